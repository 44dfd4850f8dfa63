"""Where a capture that was not closed ends, and what is known to be missing."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.profiler.capture import Capture, Cut


def cut_of(capture: Capture, *, wal_lost: bool) -> Cut:
    """Describe the cut: the time of the last row, counted from the capture's start.

    Probes and warm-up count, which the length of a run leaves out; so the note says since when.
    """
    if not capture.meta and not any(True for _ in _times(capture)):
        return Cut(0, "cut before the first rows were written: nothing was recorded")
    start_ns, since = _start(capture)
    last_ns = max(_times(capture), default=start_ns)
    seconds = (last_ns - start_ns) / 1e9
    what = "watch" if _is_watched(capture) else "run"
    note = f"cut {seconds:.1f} s after {since}: the {what} did not end"
    if wal_lost:
        note += "; its -wal file is missing, so later rows may be lost"
    return Cut(last_ns, note)


def _start(capture: Capture) -> tuple[int, str]:
    clock = capture.meta.get("clock")
    started = clock.get("monotonic_ns") if isinstance(clock, dict) else None
    if isinstance(started, int):
        return started, "recording began, any warm-up included"
    # Of a run that was watched events have no time of their own: checks stand at 0.
    rows = capture.engine_samples if _is_watched(capture) else ()
    first = min((row.t_ns for row in rows), default=None)
    if first is not None:
        return first, "its first reading"
    return min(_times(capture), default=0), "its first row"


def _is_watched(capture: Capture) -> bool:
    return "metrics_page" in capture.meta


def _times(capture: Capture) -> Iterator[int]:
    for step in capture.steps:
        yield step.start_ns
        yield step.end_ns
    for request in capture.requests:
        moments = (request.arrival_ns, request.admitted_ns, request.first_token_ns, request.end_ns)
        yield from (moment for moment in moments if moment is not None)
    for rows in (capture.tokens, capture.device_samples, capture.engine_samples, capture.events):
        yield from (row.t_ns for row in rows)
