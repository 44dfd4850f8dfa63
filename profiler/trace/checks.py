"""What a trace cannot answer, in plain sentences, and which conclusions that spoils."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stallscope.profiler.trace.intervals import Union
from stallscope.profiler.trace.phases import MarkedStep
from stallscope.profiler.trace.steady import Window
from stallscope.profiler.trace.timeline import CallKind, Finding, Trace

# A trace with fewer kernels than the first and less work than the second holds no step; fewer than
# the third are no sequence at all.
LEAST_KERNELS = 20
LEAST_BUSY_NS = 1_000_000
FEWEST_KERNELS = 3
CAPTURING_BUSY = 0.05  # a trace in which graphs were captured and kernels ran for less than this
MUCH_OVERHEAD = 0.05  # of the window, in which the profiler itself worked on the host


# What readers call the absence of kernels, with their own reason for it.
WITHOUT_KERNELS = ("no_kernel_table", "no_kernels", "kernels_not_timed")


@dataclass(frozen=True, slots=True)
class Check:
    """A sentence for the report; with `bottleneck` it ends the verdict at that class.

    `about` names what is amiss, for who knows better: "kernels" that are missing.
    """

    sentence: str
    bottleneck: str | None = None
    about: str | None = None


def checks(
    trace: Trace, busy: Union, window: Window | None, steps: Sequence[MarkedStep]
) -> Iterator[Check]:
    """Check one trace. `busy` is when any of its devices worked, within and outside the window."""
    for finding in trace.findings:
        if len(trace.kernels) or finding.what not in WITHOUT_KERNELS:
            yield Check(_told(finding))
    captures = int(np.count_nonzero(trace.calls.kind == CallKind.CAPTURE))
    kernels = len(trace.kernels)
    if kernels == 0:
        yield from _without_kernels(trace, steps)
    elif captures and window is not None and busy.total_ns < CAPTURING_BUSY * window.length_ns:
        yield Check(
            f"The trace shows CUDA graphs being captured ({captures} calls) and hardly a kernel "
            f"running ({busy.total_ns / 1e6:.2f} ms): it is of the start-up, not of inference. "
            "Trace again once the server answers requests.",
            "profiler",
        )
    elif kernels < FEWEST_KERNELS or (kernels < LEAST_KERNELS and busy.total_ns < LEAST_BUSY_NS):
        yield Check(
            f"The trace holds {kernels} kernels, {busy.total_ns / 1e3:.0f} µs in all: too little "
            "to say what limits anything. Trace at least a few steps.",
            "undetermined",
        )
    if window is not None:
        for part in window.left_out:
            yield Check(f"The figures leave out {part}.")
    if trace.facts.get("with_stack"):
        yield Check(
            "Python stacks were recorded, which slows the host several times over: time that "
            "the device waits for the host is overstated. Trace again without with_stack."
        )
    yield from _overhead(trace, window)


def _overhead(trace: Trace, window: Window | None) -> Iterator[Check]:
    """Say where the profiler itself took much of the host's time."""
    overhead_ns = trace.facts.get("profiler_overhead_ns", 0)
    if window is None or overhead_ns < MUCH_OVERHEAD * window.length_ns:
        return
    yield Check(
        f"The profiler itself worked for {overhead_ns / 1e6:.1f} ms in this time: what the device "
        "waits for the host is overstated. Trace fewer kinds of events, or later in the run."
    )


def _without_kernels(trace: Trace, steps: Sequence[MarkedStep]) -> Iterator[Check]:
    """Say it once, with the reader's own reason where there is one."""
    told = [_told(f) for f in trace.findings if f.what in WITHOUT_KERNELS] or [
        "The trace holds no kernel. Trace the device too (nsys: -t cuda; torch profiler: "
        "ProfilerActivity.CUDA)."
    ]
    if steps:
        said = f"What a device did in these steps is not known. {' '.join(told)}"
        yield Check(said, about="kernels")
    else:
        yield Check(f"{' '.join(told)} No range marks a step either.", "profiler", "kernels")


def _told(finding: Finding) -> str:
    said = finding.reason
    said = said if said.endswith((".", "!", "?")) else f"{said}."
    return f"{said} {finding.how}".strip()
