"""What profilers print that holds no figure to judge by: refusals, and profiles of Python."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import NamedTuple

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, Event, Source
from stallscope.profiler.text_lines import text_lines
from stallscope.profiler.wording import figure

# Nsight Compute and Nsight Systems name this page where a driver keeps its counters to itself.
_NO_PERMISSION = re.compile(
    r"^\s*==ERROR== ERR_NVGPUCTRPERM|ERR_NVGPUCTRPERM - "
    r"|nsufficient privilege.{0,99}ERR_NVGPUCTRPERM"
)
_NOT_PROFILED = re.compile(
    r"^\s*==(?:WARNING|ERROR)== (?:No kernels were profiled"
    r"|.{0,99}terminated before first instrumented API call)"
)
# cProfile and pstats, and line_profiler.
_PYTHON = (
    re.compile(r"^\s*ncalls\s+tottime\s+percall\s+cumtime\s+percall\s"),
    re.compile(r"^\s*Line #\s+Hits\s+Time\s+Per Hit\s+% Time\s"),
)
_SIGNS = (_NO_PERMISSION, _NOT_PROFILED, *_PYTHON)
_ROW = re.compile(
    r"^\s*\d{1,12}(?:/\d{1,12})?\s+(\d{1,9}\.\d{1,6})\s+\S+\s+\S+\s+\S+\s+(\S.{0,300})"
)
# What waits for a device to be done, as a profile names it: Tensor.cpu, .item, .tolist, .numpy,
# .nonzero, and the calls of torch.cuda.
_WAITS = re.compile(
    r"method '(?:cpu|item|tolist|numpy|nonzero)' of 'torch"
    r"|_local_scalar_dense|synchronize\b|\b(?:cuda|_cuda)\w*[Ss]ynchronize"
)
_REFUSED = (
    "The profiler was refused the GPU's counters (ERR_NVGPUCTRPERM), so that SM and DRAM "
    "throughput were not measured: they are unknown, not 0. Tracing needs no counters "
    "(nsys profile -t cuda,nvtx), and with --gpu and --model the step budget of such a trace "
    "stands in for them."
)
_ALLOW = (
    "run as root, in a container with --cap-add=SYS_ADMIN, or have the driver loaded with "
    "NVreg_RestrictProfilingToAdminUsers=0 (https://developer.nvidia.com/ERR_NVGPUCTRPERM)"
)
_NO_KERNEL = (
    "ncu profiled no kernel: the program that it was attached to launched none. Where an engine "
    "starts processes of its own, follow them: --target-processes all."
)
_NOT_THE_GPU = (
    "A profile of Python tells in which call Python was, not what the GPU did: kernels are "
    "launched and run on, and the first call that needs a result waits for all of them{share}. A "
    "CPU core at 100 % is such a wait too, as it spins. Only a trace of the GPU decides "
    "(nsys profile -t cuda,nvtx,osrt, or torch.profiler with CUDA activities)."
)


class _Told(NamedTuple):
    """What was printed, what to say of it, and what stays unknown, why, and how to see it."""

    tool: str
    sentence: str
    unseen: tuple[str, str, str]


def has_profiler_text(lines: Sequence[str]) -> bool:
    """Tell whether these lines are such a text."""
    return any(sign.search(line) for line in lines for sign in _SIGNS)


def read_profiler_text(path: str | PathLike[str]) -> Capture:
    """Read such a text as a capture that says why it cannot answer.

    Raises InputError for anything else.
    """
    path = Path(path)
    told = _told(text_lines(path))
    if told is None:
        raise InputError(f"{path} holds neither a refusal of ncu's nor a profile of Python")
    what, reason, how = told.unseen
    return Capture(
        events=(
            Event(0, "check", None, {
                "sentence": told.sentence, "class": "profiler", "blocks": ["verdict"]
            }),
            Event(0, "not_observable", None, {"what": what, "reason": reason, "how": how}),
        ),
        sources=(Source(0, told.tool, str(path), "none", 0, 0),),
        meta={"ended": {}},
    )  # fmt: skip


def _told(lines: Sequence[str]) -> _Told | None:
    if any(_NO_PERMISSION.search(line) for line in lines):
        unseen = ("SM and DRAM throughput by counters", "no permission to read them", _ALLOW)
        return _Told("a profiler's messages", _REFUSED, unseen)
    if any(_NOT_PROFILED.search(line) for line in lines):
        how = "ncu --target-processes all"
        return _Told("ncu's messages", _NO_KERNEL, ("any kernel", "none was profiled", how))
    if not any(head.search(line) for line in lines for head in _PYTHON):
        return None
    how = "trace the GPU: nsys profile -t cuda,nvtx,osrt, or torch.profiler"
    unseen = ("what the GPU did", "a profile of Python does not see it", how)
    return _Told("a profile of Python", _NOT_THE_GPU.format(share=_share(lines)), unseen)


def _share(lines: Sequence[str]) -> str:
    """Say how much of a profile's own time lies in calls that wait for a device."""
    rows = list(_own_seconds(lines))
    total = sum(seconds for seconds, _ in rows)
    waits = sum(seconds for seconds, name in rows if _WAITS.search(name))
    if not waits:
        return ""
    return f" (here {figure(waits)} s of the {figure(total)} s listed lie in calls that wait so)"


def _own_seconds(lines: Sequence[str]) -> Iterator[tuple[float, str]]:
    for line in lines:
        row = _ROW.match(line)
        if row is not None:
            yield float(row[1]), row[2]
