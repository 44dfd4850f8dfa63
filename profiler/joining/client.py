"""When a benchmark's client had requests in flight, and which of its loads is joined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from stallscope.profiler.capture import Capture
from stallscope.profiler.joining.edges import Between, Stretch, Work, exact
from stallscope.profiler.joining.flight import of_requests
from stallscope.profiler.trial import Trial, trials_from_json

_S = 1_000_000_000
_AHEAD_NS = 10 * _S  # clients ask whether a server answers, and warm it up, before time counts
_LONGEST_S = 1e8
_FEWEST_FOR_KNEE = 3


def is_of_client(capture: Capture) -> bool:
    """Tell whether a capture holds the results of a benchmark."""
    return _results(capture) is not None


def work_of_client(capture: Capture, span: tuple[int, int]) -> Work:
    """Return when requests were in flight: nothing of a client's lies before or after.

    A server may have been at work up to ten seconds earlier.
    """
    spans = [(r.arrival_ns, r.end_ns) for r in capture.requests if r.end_ns is not None] or [span]
    found = list(exact(spans, 0))
    first = found[0].begin
    if first is not None:
        found[0] = Stretch(Between(first.first_ns - _AHEAD_NS, first.last_ns), found[0].end)
    return Work(span, 0, tuple(found), of_requests(capture.requests), is_whole=True)


def stated_span(capture: Capture) -> tuple[int, int] | None:
    """Return from when to when the judged load lasted, from 0; None where it is not stated."""
    duration_s = judged(capture).duration_s
    if duration_s is None or not 0 < duration_s < _LONGEST_S:
        return None
    return 0, round(duration_s * _S)


def judged(capture: Capture) -> Trial:
    """Return the load that the results are judged by."""
    results = _results(capture) or {}
    trials = trials_from_json(results.get("trials"))
    index = results.get("judged")
    return trials[index] if isinstance(index, int) and 0 <= index < len(trials) else Trial("")


def only_judged(capture: Capture) -> tuple[Capture, Iterator[str]]:
    """Return the results of the judged load alone, and a sentence where there were others.

    What other sources saw is of its time: they cannot tell of the other loads.
    """
    results = _results(capture)
    trials = () if results is None else trials_from_json(results.get("trials"))
    if results is None or len(trials) < 2:
        return capture, iter(())
    kept = results["trials"][results["judged"] : results["judged"] + 1]
    meta = {**capture.meta, "benchmark": {**results, "trials": kept, "judged": 0}}
    said = f"Of {len(trials)} loads the one with most tokens per second is joined"
    if len(trials) >= _FEWEST_FOR_KNEE:
        said += "; where more load stops paying, the results tell alone, without the other files"
    said += "."
    return replace(capture, meta=meta), iter((said,))


def _results(capture: Capture) -> Mapping[str, Any] | None:
    found = capture.meta.get("benchmark")
    return found if isinstance(found, Mapping) else None
