"""Nsight Systems: will its trace become a report, hold our ranges, and the GPU's counters."""

from __future__ import annotations

import re
from pathlib import Path

from stallscope.profiler.doctor.ask import Answer, ask, look
from stallscope.profiler.doctor.counters import may_read_counters
from stallscope.profiler.doctor.nvml import driver_version
from stallscope.profiler.doctor.surroundings import Surroundings, at_least
from stallscope.profiler.doctor.tools import NSYS, Found, find_tool
from stallscope.profiler.evidence import Check
from stallscope.profiler.nsys.importer import other_importer, own_importer

_IMPORTER = "nsys importer"
_RANGES = "nsys with nvtx"
_METRICS = "nsys GPU metrics"
_IMPORTER_LOST = "reports: nsys leaves a .qdstrm file that no other program reads"
_RANGES_LOST = "which kernel belongs to prefill and which to decode"
_METRICS_LOST = "SM issue, tensor and DRAM activity over time"
_OLD_NVTX = "pip install 'nvtx<0.2.12'"
_TRY = (
    "try it: nsys profile -t nvtx --sample=none -o try stallscope run --model tiny-26m "
    "--requests 1, and look for the domain stallscope"
)


def nsys_checks(place: Surroundings) -> tuple[Check, ...]:
    """Check nsys, and what it needs besides itself."""
    found = find_tool(place, NSYS)
    return (
        found.check,
        _importer(place, found),
        _ranges(found, look(place, "nvtx")),
        gpu_metrics_check(place, found),
    )


def _importer(place: Surroundings, nsys: Found) -> Check:
    if nsys.path is None:
        return _no_nsys(nsys, _IMPORTER, _IMPORTER_LOST)
    beside = own_importer(nsys.path)
    if beside is not None:
        return _starts(place, beside, f"{beside}, where nsys looks for it")
    other = other_importer(place, nsys.path)
    if _is_script(nsys.path):
        reason = f"{nsys.path} is a script; where it starts nsys from is not known"
        fix = "run nsys profile -t nvtx -o try true, and see whether it leaves try.nsys-rep"
        return Check(_IMPORTER, "unknown", reason, _IMPORTER_LOST, fix)
    if other is None:
        reason = f"no QdstrmImporter belongs to {nsys.path.resolve()}: a target-only install"
        fix = "install the host part of Nsight Systems, or convert the .qdstrm file where it is"
        return Check(_IMPORTER, "missing", reason, _IMPORTER_LOST, fix)
    check = _starts(place, other, f"nsys does not look where it is: {other}")
    if check.status != "ok":
        return check
    fix = f"after each trace: {other} -i X.qdstrm -o X.nsys-rep"
    return Check(_IMPORTER, "limited", check.reason, _IMPORTER_LOST, fix)


def _starts(place: Surroundings, importer: Path, reason: str) -> Check:
    answer = ask(place, [str(importer), "--version"])
    if answer.problem is None:
        return Check(_IMPORTER, "ok", reason)
    fix = "install the libraries that it names, or the whole of Nsight Systems"
    return Check(_IMPORTER, answer.status, f"{importer} {answer.problem}", _IMPORTER_LOST, fix)


def _is_script(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False


def _ranges(nsys: Found, nvtx: dict[str, object] | Answer) -> Check:
    if nsys.version is None:
        return _no_nsys(nsys, _RANGES, _RANGES_LOST)
    if isinstance(nvtx, Answer) or "version" not in nvtx:
        return Check(_RANGES, "missing", "nvtx is not usable", _RANGES_LOST, "pip install nvtx")
    return judge_ranges(nsys.version, str(nvtx["version"]))


def judge_ranges(nsys: str, nvtx: str) -> Check:
    """Say what is known of two versions together; what nobody tried is unknown."""
    pair = f"nsys {nsys} with nvtx {nvtx}"
    if not at_least(nvtx, 0, 2, 10):
        reason = f"{pair}: nvtx 0.2.8 was seen to arrive empty"
        return Check(_RANGES, "limited", reason, _RANGES_LOST, f"{_OLD_NVTX} --upgrade")
    if at_least(nvtx, 0, 2, 12):
        if not at_least(nsys, 2023, 3):
            # Measured with 2022.4.2; reported for 2023.2.3 (github.com/NVIDIA/NVTX issue 126).
            reason = f"{pair}: every range is lost, silently"
            return Check(_RANGES, "limited", reason, _RANGES_LOST, _OLD_NVTX)
    elif re.match(r"2022\.4\.", nsys):
        return Check(_RANGES, "ok", f"{pair}: all ranges arrive (measured with these versions)")
    reason = f"{pair}: not tried together by the makers of stallscope"
    return Check(_RANGES, "unknown", reason, _RANGES_LOST, _TRY)


def gpu_metrics_check(place: Surroundings, nsys: Found) -> Check:
    """Say whether nsys may sample the GPU's counters here."""
    if driver_version(place) is None:
        reason = "the kernel has no NVIDIA module loaded"
        return Check(_METRICS, "missing", reason, _METRICS_LOST, "see NVML")
    if nsys.path is None:
        return _no_nsys(nsys, _METRICS, _METRICS_LOST)
    permission = may_read_counters(place)
    if permission.status != "ok":
        return Check(_METRICS, permission.status, permission.reason, _METRICS_LOST, permission.fix)
    return _offered(place, nsys.path)


def _offered(place: Surroundings, nsys: Path) -> Check:
    answer = ask(place, [str(nsys), "profile", "--gpu-metrics-devices=help"])
    if answer.problem is not None and not answer.timed_out:  # up to 2024 the option's name was
        answer = ask(place, [str(nsys), "profile", "--gpu-metrics-device=help"])
    supported = answer.stdout.split("not supported:")[0]
    names = re.findall(r"^\s*\d+: (?!.*\(not supported\))(.+)$", supported, re.MULTILINE)
    if names and answer.problem is None:
        return Check(_METRICS, "ok", f"nsys offers them for {', '.join(map(str.strip, names))}")
    said = answer.problem or " ".join(answer.stdout.split())[-160:]
    fix = "https://docs.nvidia.com/nsight-systems/UserGuide/index.html#gpu-metrics"
    return Check(_METRICS, "unknown", f"nsys offers no device: {said}", _METRICS_LOST, fix)


def _no_nsys(nsys: Found, name: str, lost: str) -> Check:
    return Check(name, nsys.check.status, "no nsys that answers", lost, "see nsys")
