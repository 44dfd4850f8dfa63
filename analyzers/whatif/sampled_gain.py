"""What raising the sequence cap would buy at the most, by a server's samples at several loads."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.load.engines import Values, clip, moments, queued
from stallscope.analyzers.load.more_running import LEAST_SPREAD, Growth, observe_growth
from stallscope.analyzers.load.pool_use import used_share
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.measures import measure
from stallscope.analyzers.result import Gain
from stallscope.analyzers.whatif.replay import WhatIf
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure, NotObservable

_CAP_SEEN = 0.9  # of the cap: what ran must have come so near for its rate to be the one at the cap


def sampled_gain(capture: Capture, judgement: Judgement, span: Span) -> WhatIf | None:
    """Bound the gain from letting everybody in who waited at the sequence cap.

    Running rises to what was in flight while something waited, or to what the KV pool holds. None
    where another limit held the queue, or where samples do not tell how tokens grow with running.
    """
    growth = _growth(capture, judgement, span)
    if growth is None:
        return None
    wanted, room = _wanted(capture, span, growth)
    most = growth.most(min(wanted, room))
    # From no gain to the most: the middle, and half the distance as its error.
    middle = growth.rate_high * (1.0 + most / 2)
    error = growth.rate_high * most / 2 / middle
    gain = Gain("output_tokens_per_s", "tokens/s", growth.rate_high, middle, error)
    return WhatIf(gain, "capacity" if room < wanted else None, is_bound=True)


def growth_measures(capture: Capture, judgement: Judgement, span: Span) -> Iterator[Measure]:
    """Yield how tokens grew with running requests, where that bounded the gain."""
    growth = _growth(capture, judgement, span)
    if growth is not None:
        source = (
            f"{growth.rate_low:.0f} tokens/s with {growth.low:.0f} running, "
            f"{growth.rate_high:.0f} with {growth.high:.0f}, and their errors"
        )
        yield measure("growth_exponent", growth.exponent, "bound", source, side="upper")


def untold_gain(capture: Capture, judgement: Judgement, span: Span) -> tuple[NotObservable, ...]:
    """Say why the gain is not known, and how it would be."""
    if not _is_at_cap(capture, judgement) or _growth(capture, judgement, span) is not None:
        return ()
    return (
        NotObservable(
            "what raising the sequence cap would buy",
            "running did not stand for a few samples at two numbers, one "
            f"{LEAST_SPREAD:g} times the other: nothing shows how tokens/s grow with it",
            "watch while the load rises to the cap, ten seconds or more at each of several loads; "
            "or compare a run with a higher cap",
        ),
    )


def _is_at_cap(capture: Capture, judgement: Judgement) -> bool:
    return judgement.decision.limit == "seqs" and not capture.steps and not capture.requests


def _growth(capture: Capture, judgement: Judgement, span: Span) -> Growth | None:
    if not _is_at_cap(capture, judgement):
        return None
    growth = observe_growth(capture.engine_samples, span)
    cap = capture.subject.max_num_seqs
    if growth is None or (cap is not None and growth.high < _CAP_SEEN * cap):
        return None
    return growth


def _wanted(capture: Capture, span: Span, growth: Growth) -> tuple[float, float]:
    """Return the requests in flight while something waited, and how many the KV pool holds."""
    found = clip(moments(capture.engine_samples), span.start_ns, span.end_ns)
    rows = [(m.duration_ns, v) for m in found for v in m.engines.values() if queued(v)]
    total = sum(ns for ns, _ in rows) or 1
    wanted = sum(ns * (v["running"] + queued(v)) for ns, v in rows) / total
    room = min((_holds(v) for _, v in rows), default=wanted)
    return max(wanted, growth.high), max(room, growth.high)


def _holds(values: Values) -> float:
    """Return how many requests like those that run fit into the pool."""
    used = used_share(values)
    return values["running"] / used if used else float("inf")
