"""Which distribution the module `pynvml` comes from: NVIDIA's own, or one that is in its way."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib.metadata import Distribution, distributions
from importlib.util import find_spec
from pathlib import Path

from stallscope.profiler.doctor.surroundings import at_least
from stallscope.profiler.evidence import Check

_NAME = "pynvml binding"
_OFFICIAL = "nvidia-ml-py"
_CLAIMANTS = re.compile(r"nvidia-ml-py|nvidia-ml-py3|pynvml")  # all install a module pynvml
_LEAST = (12, 535)  # as pyproject.toml has it
_LOST = "NVML: memory, power, clocks, utilisation and GPM counters of the GPU"


def check_binding() -> Check:
    """Say which distribution answers to `import pynvml`; nothing is imported."""
    spec = find_spec("pynvml")
    if spec is None or spec.origin is None:
        reason = "no module pynvml is installed"
        return Check(_NAME, "missing", reason, _LOST, f"pip install {_OFFICIAL}")
    claimants = [d for d in distributions() if _CLAIMANTS.fullmatch(_name(d))]
    owner = next((d for d in claimants if _owns(d, Path(spec.origin))), None)
    if owner is None and any(d.files is None for d in claimants):
        reason = f"{_titles(claimants)} does not say whether {spec.origin} is its own"
        fix = f"pip install --force-reinstall {_OFFICIAL}"
        return Check(_NAME, "unknown", reason, _LOST, fix)
    others = sorted({name for d in claimants if (name := _name(d)) != _OFFICIAL})
    if owner is None or _name(owner) != _OFFICIAL:
        return _foreign(owner, others, spec.origin)
    return _official(owner, [d for d in claimants if _name(d) != _OFFICIAL])


def _foreign(owner: Distribution | None, others: Sequence[str], origin: str) -> Check:
    source = "of no known distribution" if owner is None else f"from {_titles([owner])}"
    reason = f"pynvml is {source} ({origin}), not NVIDIA's {_OFFICIAL}"
    remove = f"remove {origin}" if owner is None else f"pip uninstall -y {' '.join(others)}"
    # Two distributions write one module: removing one may take the other's file along.
    fix = f"{remove}; pip install --force-reinstall {_OFFICIAL}"
    lost = "whatever that module lacks or does otherwise: GPM, newer fields, newer structures"
    return Check(_NAME, "limited", reason, lost, fix)


def _official(owner: Distribution, others: Sequence[Distribution]) -> Check:
    title = _titles([owner])
    if others:
        reason = f"{title} answers, but {_titles(others)} is installed besides"
        lost = "certainty: both want the name pynvml, and the next install may swap them"
        fix = f"pip uninstall -y {' '.join(map(_name, others))}"
        return Check(_NAME, "limited", reason, lost, fix)
    if not at_least(owner.version, *_LEAST):
        fix = f"pip install --upgrade '{_OFFICIAL}>={'.'.join(map(str, _LEAST))}'"
        return Check(_NAME, "limited", f"{title} is old", "GPM and newer fields of NVML", fix)
    return Check(_NAME, "ok", f"{title}, NVIDIA's own")


def _titles(found: Sequence[Distribution]) -> str:
    return ", ".join(f"{_name(d)} {d.version}" for d in found)


def _name(distribution: Distribution) -> str:
    return re.sub(r"[-_.]+", "-", distribution.metadata["Name"] or "").lower()


def _owns(distribution: Distribution, origin: Path) -> bool:
    return any(
        Path(str(distribution.locate_file(file))).resolve() == origin.resolve()
        for file in distribution.files or ()
        if file.parts[0] in ("pynvml.py", "pynvml")
    )
