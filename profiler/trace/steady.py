"""The window of a trace that speaks of the work: without start-up and without what came after."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from stallscope.profiler.capture import Step
from stallscope.profiler.trace.intervals import Union, within

# A silence this long, beside which next to nothing ran, is not part of the work that follows or
# went before: a profiler that was started, a graph that was captured, a server that waited.
LEAST_SILENCE_NS = 20_000_000
MOST_OUTSIDE = 0.05  # of the kernel time, on the silence's far side
LEAST_SHARE = 0.20  # of the trace, that the silence takes
MOSTLY_QUEUED = 0.90  # of a silence, in which work was launched already


@dataclass(frozen=True, slots=True)
class Window:
    """From `start_ns` to `end_ns`; `left_out` says in words what lies outside, if anything."""

    start_ns: int
    end_ns: int
    left_out: tuple[str, ...] = ()

    @property
    def length_ns(self) -> int:
        return self.end_ns - self.start_ns


def steady_window(busy: Union, queued: Union, steps: Sequence[Step]) -> Window | None:
    """Return the window of the steps without warm-up, else that of the kernels.

    `busy` is when any device worked, `queued` when none did although work was launched. None where
    nothing ran.
    """
    counted = [s for s in steps if not s.warmup]
    if counted:
        window = Window(min(s.start_ns for s in counted), max(s.end_ns for s in counted))
        return _without_old_queue(window, busy, queued) if len(busy) else window
    return _of_kernels(busy) if len(busy) else None


def _without_old_queue(window: Window, busy: Union, queued: Union) -> Window:
    """Leave out a gap before nearly all kernels in which the device had work queued.

    A trace that begins in the middle of things shows what was launched, not what was still running
    from before.
    """
    for start_ns, end_ns in _silences(busy, window, LEAST_SILENCE_NS):
        if _share_before(busy, start_ns) > MOST_OUTSIDE:
            return window
        if within(queued, start_ns, end_ns).total_ns >= MOSTLY_QUEUED * (end_ns - start_ns):
            said = (
                f"a gap of {(end_ns - start_ns) / 1e9:.2f} s before the first kernels, in which "
                "the device still had work that the trace does not show"
            )
            return Window(end_ns, window.end_ns, (said,))
    return window


def _of_kernels(busy: Union) -> Window:
    start_ns, end_ns = int(busy.start_ns[0]), int(busy.end_ns[-1])
    least_ns = max(LEAST_SILENCE_NS, round(LEAST_SHARE * (end_ns - start_ns)))
    left_out: list[str] = []
    for silence_start, silence_end in _silences(busy, Window(start_ns, end_ns), least_ns):
        before = _share_before(busy, silence_start)
        length = f"{(silence_end - silence_start) / 1e9:.2f} s"
        if before <= MOST_OUTSIDE:
            start_ns = silence_end
            left_out.append(f"a gap of {length} after the first kernels: start-up, not work")
        elif before >= 1.0 - MOST_OUTSIDE:
            end_ns = min(end_ns, silence_start)
            left_out.append(f"a gap of {length} before the last kernels: shut-down, not work")
    return Window(start_ns, end_ns, tuple(left_out))


def _silences(busy: Union, window: Window, least_ns: int) -> Iterator[tuple[int, int]]:
    """Yield the gaps of at least this length within the window, its ends counted as busy."""
    seen = within(busy, window.start_ns, window.end_ns)
    if not len(seen):
        return
    if seen.start_ns[0] - window.start_ns >= least_ns:
        yield window.start_ns, int(seen.start_ns[0])
    for place in np.flatnonzero(seen.start_ns[1:] - seen.end_ns[:-1] >= least_ns).tolist():
        yield int(seen.end_ns[place]), int(seen.start_ns[place + 1])
    if window.end_ns - seen.end_ns[-1] >= least_ns:
        yield int(seen.end_ns[-1]), window.end_ns


def _share_before(busy: Union, t_ns: int) -> float:
    lengths = busy.end_ns - busy.start_ns
    return float(lengths[busy.end_ns <= t_ns].sum() / lengths.sum())
