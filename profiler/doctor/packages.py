"""Optional packages, imported for real in a Python of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stallscope.profiler.doctor.ask import look
from stallscope.profiler.doctor.nvml import driver_version
from stallscope.profiler.doctor.surroundings import Surroundings, at_least
from stallscope.profiler.evidence import Check

Facts = dict[str, Any]
_RUN = "stallscope run"
_CUDA_PAGE = "https://pytorch.org/get-started/locally/"


def torch_check(place: Surroundings) -> Check:
    """Check torch: its version, what it was built for, and whether that is there."""
    fix = "pip install 'stallscope[runner]'"
    return _looked_at(place, "torch", _RUN, fix, lambda facts: _torch(place, facts))


def transformers_check(place: Surroundings) -> Check:
    """Check transformers."""
    lost = "stallscope run --engine transformers"
    return _simple(place, "transformers", lost, "pip install 'transformers>=4.57'", (4, 57))


def matplotlib_check(place: Surroundings) -> Check:
    """Check matplotlib."""
    lost = "the plots of Markdown reports"
    return _simple(place, "matplotlib", lost, "pip install 'stallscope[plots]'", (3, 8))


def nvtx_check(place: Surroundings) -> Check:
    """Check nvtx, and that nothing has switched its ranges off."""
    lost = "phases in the traces of nsys"

    def judge(facts: Facts) -> Check:
        title = f"{facts['version']}, {facts['range_ns']:.0f} ns a range"
        if place.environ.get("NVTX_DISABLE"):
            reason = f"{title}, but NVTX_DISABLE is set: ranges do nothing"
            return Check("nvtx", "limited", reason, lost, "unset NVTX_DISABLE")
        tool = place.environ.get("NVTX_INJECTION64_PATH")
        state = f"a tool listens: {tool}" if tool else "without a tool they do nothing"
        return Check("nvtx", "ok", f"{title}; {state}")

    return _looked_at(place, "nvtx", lost, "pip install nvtx", judge)


def _looked_at(
    place: Surroundings, name: str, lost: str, fix: str, judge: Callable[[Facts], Check]
) -> Check:
    found = look(place, name)
    if isinstance(found, dict):
        if found.get("no_module") == name:
            return Check(name, "missing", "not installed", lost, fix)
        if "no_module" in found:
            reason = f"its import fails: there is no module {found['no_module']}"
            return Check(name, "missing", reason, lost, fix)
        return judge(found)
    return Check(name, found.status, f"its import {found.problem}", lost, fix)


def _simple(place: Surroundings, name: str, lost: str, fix: str, least: tuple[int, int]) -> Check:
    def judge(facts: Facts) -> Check:
        version = str(facts["version"])
        if at_least(version, *least):
            return Check(name, "ok", f"{version}, and its import works")
        needs = ".".join(map(str, least))
        return Check(name, "limited", f"{version} is older than {needs}", lost, fix)

    return _looked_at(place, name, lost, fix, judge)


def _torch(place: Surroundings, facts: Facts) -> Check:
    version, cuda, count = str(facts["version"]), facts["cuda"], int(facts["devices"])
    build = f"CUDA {cuda}" if cuda else f"ROCm {facts['hip']}" if facts["hip"] else "CPU"
    title = f"{version}, built for {build}"
    if not at_least(version, 2, 5):
        fix = "pip install --upgrade 'torch>=2.5'"
        return Check("torch", "limited", f"{title}; older than 2.5", _RUN, fix)
    if count:
        return Check("torch", "ok", f"{title}, sees {count} device{'s' if count > 1 else ''}")
    if driver_version(place) is None:
        return Check("torch", "ok", f"{title}; no NVIDIA driver here, runs on the CPU")
    lost = "stallscope run --device cuda"
    if not cuda:
        fix = f"install a CUDA build of torch: {_CUDA_PAGE}"
        return Check("torch", "limited", f"{title}, beside an NVIDIA driver", lost, fix)
    said = "; ".join(facts["warnings"]) or "it does not say why"
    fix = f"unset CUDA_VISIBLE_DEVICES, update the driver, or choose another build: {_CUDA_PAGE}"
    return Check("torch", "limited", f"{title}, sees no device: {said}", lost, fix)
