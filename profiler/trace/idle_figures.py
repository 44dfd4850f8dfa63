"""Why a device idled, as shares of the window: by the host's calls, and by the parts of a step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from stallscope.profiler.trace.device_work import DeviceWork
from stallscope.profiler.trace.gap_causes import gap_causes
from stallscope.profiler.trace.intervals import Union, overlap_ns, union, within
from stallscope.profiler.trace.kernel_rows import DeviceRows
from stallscope.profiler.trace.steady import Window
from stallscope.profiler.trace.step_parts import step_part
from stallscope.profiler.trace.timeline import Trace

# Parts of a step that engines mark on the host; a module's range is of the forward pass.
PARTS = ("schedule", "prepare", "forward", "draft", "sample", "bookkeep", "output")


def figure(name: str, value: float, unit: str, source: str, **more: str) -> dict[str, object]:
    """Return the data of a `trace_figure` event."""
    return {"name": name, "value": value, "unit": unit, "source": source, **more}


def idle_figures(
    trace: Trace, rows: DeviceRows, work: DeviceWork, window: Window
) -> Iterator[dict[str, object]]:
    """Share out a device's idle time: `idle_in_CAUSE`, whose sum is all of it.

    `idle_within_PART` is that part of it which lay within an engine's own mark, as vLLM has them.
    """
    if not rows.kernels.any():
        return
    waiting = _waiting(work, window)
    yield from _within_parts(trace, waiting, window)
    seen = np.bincount(trace.kernels.thread[rows.kernels] + 1)  # place 0 is "not known"
    threads = np.flatnonzero(seen[1:]).astype(np.int32)
    if not len(threads) or not (len(trace.calls) or len(trace.operators)):
        return  # nothing of the host was traced, so nothing can be said of it
    source = "of the traced window, while the device had nothing to do"
    queued = within(work.queued, window.start_ns, window.end_ns).total_ns
    times = {"queued": queued, **gap_causes(trace, waiting, threads)}
    for cause, time_ns in times.items():
        if time_ns:
            yield figure(f"idle_in_{cause}", time_ns / window.length_ns, "fraction", source)


def _waiting(work: DeviceWork, window: Window) -> Union:
    """Return when the device waited for its host: between rows, before and after them."""
    if not len(work.busy):  # kernels of no length alone
        return union(np.array([window.start_ns]), np.array([window.end_ns]))
    between = within(work.waiting, window.start_ns, window.end_ns)
    first = min(max(int(work.busy.start_ns[0]), window.start_ns), window.end_ns)
    last = max(min(int(work.busy.end_ns[-1]), window.end_ns), first)
    starts = np.concatenate(([window.start_ns], between.start_ns, [last]))
    ends = np.concatenate(([first], between.end_ns, [window.end_ns]))
    return union(starts, ends)


def _within_parts(trace: Trace, waiting: Union, window: Window) -> Iterator[dict[str, object]]:
    marks = trace.marks
    parts = [step_part(text) for text in trace.texts]
    kinds = np.array([PARTS.index(p.kind) if p and p.kind in PARTS else -1 for p in parts] or [-1])
    of_mark = kinds[marks.text] if len(marks) else kinds[:0]
    for index, part in enumerate(PARTS):
        chosen = (of_mark == index) & (marks.end_ns >= marks.start_ns)
        if chosen.any():
            time_ns = overlap_ns(waiting, union(marks.start_ns[chosen], marks.end_ns[chosen]))
            source = f"of the traced window, idle while the engine's mark of {part} was open"
            yield figure(f"idle_within_{part}", time_ns / window.length_ns, "fraction", source)
