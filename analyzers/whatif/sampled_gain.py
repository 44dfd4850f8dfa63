"""What raising the sequence cap would buy at the most, by a server's samples."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.load.engines import Values, clip, moments, queued
from stallscope.analyzers.load.more_running import LEAST_SPREAD, Growth, observe_growth
from stallscope.analyzers.load.pool_use import used_share
from stallscope.analyzers.measures import measure
from stallscope.analyzers.prepared import Run
from stallscope.analyzers.result import Gain
from stallscope.analyzers.whatif.model_gain import most_by_model
from stallscope.analyzers.whatif.replay import WhatIf
from stallscope.profiler.evidence import Measure, NotObservable
from stallscope.profiler.wording import figure

_WHAT = "what raising the sequence cap would buy"
_CAP_SEEN = 0.9  # of the cap: what ran must have come so near for its rate to be the one at the cap


def sampled_gain(run: Run, judgement: Judgement) -> WhatIf | None:
    """Bound the gain from letting everybody in who waited at the sequence cap.

    Running rises to what was in flight while something waited, or to what the KV pool holds. The
    bound is the lower of two: what more running brought already, and what the cost model makes of
    the mean step. None where another limit held the queue, or where neither is known.
    """
    if not _is_at_cap(run, judgement):
        return None
    running, wanted, room = _queue(run)
    growth, after = _growth(run, judgement), min(wanted, room)
    bounds = [(growth.rate_high, growth.most(after))] if growth is not None else []
    if running >= _CAP_SEEN * (run.capture.subject.max_num_seqs or 0):
        times = max(1.0, after / running)
        modelled = most_by_model(run.capture, run.cost, run.span, times, run.thresholds)
        bounds += [modelled] if modelled is not None else []
    if not bounds:
        return None
    before, most = min(bounds, key=lambda bound: bound[1])
    # From no gain to the most: the middle, and half the distance as its error.
    middle = before * (1.0 + most / 2)
    gain = Gain("output_tokens_per_s", "tokens/s", before, middle, before * most / 2 / middle)
    return WhatIf(gain, "capacity" if room < wanted else None, is_bound=True)


def growth_measures(run: Run, judgement: Judgement) -> Iterator[Measure]:
    """Yield how tokens grew with running requests, where that bounds the gain."""
    growth = _growth(run, judgement)
    if growth is not None:
        source = (
            f"{figure(growth.rate_low)} tokens/s with {growth.low:.0f} running, "
            f"{growth.rate_high:.0f} with {growth.high:.0f}, and their errors"
        )
        yield measure("growth_exponent", growth.exponent, "bound", source, side="upper")


def untold_gain(run: Run, judgement: Judgement, found: WhatIf | None) -> tuple[NotObservable, ...]:
    """Say why the gain is not known, and how it would be."""
    if not _is_at_cap(run, judgement) or found is not None:
        return ()
    engines = {s.engine for s in run.capture.engine_samples if s.name == "running"}
    if len(engines) > 1:
        reason = f"the samples are of {len(engines)} engines, which share the load unevenly"
        return (NotObservable(_WHAT, reason, "give the samples of one engine alone"),)
    how = "watch while the load rises to the cap, ten seconds or more at each of several loads"
    how += "; or compare a run with a higher cap"
    if run.cost is None:
        how += "; or add --model and --gpu"
    return (
        NotObservable(
            _WHAT,
            "running did not stand for a few samples at two numbers, one "
            f"{LEAST_SPREAD:g} times the other: nothing shows how tokens/s grow with it",
            how,
        ),
    )


def _is_at_cap(run: Run, judgement: Judgement) -> bool:
    is_sampled = not run.capture.steps and not run.capture.requests
    return judgement.decision.limit == "seqs" and is_sampled and bool(run.capture.engine_samples)


def _growth(run: Run, judgement: Judgement) -> Growth | None:
    if not _is_at_cap(run, judgement):
        return None
    growth = observe_growth(run.capture.engine_samples, run.span)
    cap = run.capture.subject.max_num_seqs
    if growth is None or (cap is not None and growth.high < _CAP_SEEN * cap):
        return None
    return growth


def _queue(run: Run) -> tuple[float, float, float]:
    """Return what ran and was in flight while something waited, and how many the KV pool holds."""
    found = clip(moments(run.capture.engine_samples), run.span.start_ns, run.span.end_ns)
    rows = [(m.duration_ns, v) for m in found for v in m.engines.values() if queued(v)]
    total = sum(ns for ns, _ in rows) or 1
    running = sum(ns * v["running"] for ns, v in rows) / total
    wanted = running + sum(ns * queued(v) for ns, v in rows) / total
    return running, wanted, min((_holds(v) for _, v in rows), default=wanted)


def _holds(values: Values) -> float:
    """Return how many requests like those that run fit into the pool."""
    used = used_share(values)
    return values["running"] / used if used else float("inf")
