"""The document's four rules (section 3.4), literally: met, not met, or not observable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.quantities import is_above, is_below, is_impossible
from stallscope.analyzers.result import RuleResult
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.evidence import Measure

MET, NOT_MET, UNSEEN = "met", "not met", "not observable"

# In decode, kernels stream weights and KV once; counters show at most about a quarter more DRAM
# traffic than what must move (activations, re-read tiles). So an MBU this far below a threshold
# rules the threshold out, by estimate; nearer to it only a counter can tell. See docs/metrics.md.
DECODE_TRAFFIC_EXCESS = 1.25


@dataclass(frozen=True, slots=True)
class RuleEvidence:
    """What the rules look at; empty or None is not observable, with `why` by quantity."""

    memory: Measure | None
    allocation_failures: Measure | None
    memory_note: str | None  # "pre-allocated by the engine", where a pool is
    sm: tuple[Measure, ...]
    dram: tuple[Measure, ...]  # of the decode steps where they can be told apart
    dram_is_decode: bool
    queue_share: Measure | None
    utilisation: tuple[Measure, ...]  # SM throughput, else busy as an upper bound
    decode_requests: Measure | None
    decode_engine: tuple[Measure, ...]
    why: dict[str, str]


def _fmt(m: Measure) -> str:
    sign = {"lower": "≥ ", "upper": "≤ ", None: ""}[m.side]
    return f"{sign}{m.value:.3f}"


def _said(quantity: str, m: Measure) -> str:
    return f"{quantity}{' in decode' if m.name.endswith('_decode') else ''} {_fmt(m)}"


def capacity_rule(evidence: RuleEvidence, t: Thresholds) -> RuleResult:
    """Memory near its limit and an allocation failure."""
    text = f"memory ≥ {t.near_limit:.2f} and an allocation failure"
    memory, failures = evidence.memory, evidence.allocation_failures
    shown = tuple(m for m in (memory, failures) if m is not None)
    note = f" ({evidence.memory_note})" if evidence.memory_note else ""
    if memory is not None and memory.value < t.near_limit:
        reason = f"memory {memory.value:.3f} is below {t.near_limit:.2f}{note}"
        return RuleResult("capacity", text, NOT_MET, reason, shown)
    if failures is not None and failures.value == 0:
        reason = "no allocation failed"
        if memory is not None:
            reason = f"memory {memory.value:.3f}{note}, but {reason}"
        return RuleResult("capacity", text, NOT_MET, reason, shown)
    if memory is None or failures is None:
        missing = "memory" if memory is None else "allocation_failures"
        return RuleResult("capacity", text, UNSEEN, evidence.why[missing], shown)
    reason = f"memory {memory.value:.3f} ≥ {t.near_limit:.2f}, {failures.value:.0f} failed{note}"
    return RuleResult("capacity", text, MET, reason, shown)


def _dram_state(evidence: RuleEvidence, t: Thresholds) -> tuple[bool | None, str]:
    high, measure = is_above(evidence.dram, t.dram_high)
    if measure is not None:
        side = "above" if high else "not above"
        return high, f"{_said('DRAM', measure)}, {side} {t.dram_high:.2f}"
    possible = (m for m in evidence.dram if not is_impossible(m))
    lower = next((m for m in possible if m.side == "lower"), None)
    if lower is not None and evidence.dram_is_decode:
        most = lower.value * DECODE_TRAFFIC_EXCESS
        if most <= t.dram_high:
            return False, (
                f"bytes that must move fill {lower.value:.3f} of the peak; with "
                f"{percent(DECODE_TRAFFIC_EXCESS - 1)} more traffic than that, {most:.3f} "
                f"≤ {t.dram_high:.2f} (estimated)"
            )
    if lower is not None:
        return None, (
            f"bytes that must move fill ≥ {lower.value:.3f} of the peak, which does not settle "
            f"DRAM > {t.dram_high:.2f}"
        )
    return None, evidence.why["dram"]


def bandwidth_rule(evidence: RuleEvidence, t: Thresholds) -> RuleResult:
    """Low SM throughput with high DRAM throughput."""
    text = f"SM < {t.sm_low:.2f} and DRAM > {t.dram_high:.2f}"
    shown = (*evidence.sm, *evidence.dram)
    high, dram_reason = _dram_state(evidence, t)
    sm_low, sm_measure = is_below(evidence.sm, t.sm_low)
    if sm_measure is not None:
        side = "below" if sm_low else "not below"
        sm_reason = f"{_said('SM', sm_measure)}, {side} {t.sm_low:.2f}"
    else:
        sm_reason = evidence.why["sm"]
    if high is False:
        return RuleResult("bandwidth", text, NOT_MET, dram_reason, shown)
    if sm_low is False:
        return RuleResult("bandwidth", text, NOT_MET, sm_reason, shown)
    if high and sm_low:
        how = "by bounds: " if sm_measure is not None and sm_measure.side else ""
        return RuleResult("bandwidth", text, MET, f"{how}{sm_reason}; {dram_reason}", shown)
    reasons = [r for r, known in ((sm_reason, sm_low), (dram_reason, high)) if known is None]
    return RuleResult("bandwidth", text, UNSEEN, "; ".join(dict.fromkeys(reasons)), shown)


def scheduling_rule(evidence: RuleEvidence, t: Thresholds) -> RuleResult:
    """Serious queueing while the device is not highly used."""
    line, used = t.queue_wait_share, t.utilisation_not_high
    text = f"queue wait ≥ {line:.2f} of end-to-end time and GPU utilisation ≤ {used:.2f}"
    queue = evidence.queue_share
    shown = tuple(m for m in (queue, *evidence.utilisation) if m is not None)
    if queue is not None and queue.side is None and queue.value < line:
        reason = f"queue wait share {queue.value:.3f} is below {line:.2f}"
        return RuleResult("scheduling", text, NOT_MET, reason, shown)
    high, measure = is_above(evidence.utilisation, used)
    if high:
        reason = f"utilisation {_fmt(measure)} > {used:.2f}" if measure else "utilisation is high"
        return RuleResult("scheduling", text, NOT_MET, reason, shown)
    if queue is None:
        return RuleResult("scheduling", text, UNSEEN, evidence.why["queue"], shown)
    if queue.value < line:
        reason = f"queue wait share {_fmt(queue)} does not settle {line:.2f}: {queue.source}"
        return RuleResult("scheduling", text, UNSEEN, reason, shown)
    if measure is None:
        return RuleResult("scheduling", text, UNSEEN, evidence.why["utilisation"], shown)
    reason = f"queue wait share {_fmt(queue)} ≥ {line:.2f}, utilisation {_fmt(measure)}"
    return RuleResult("scheduling", text, MET, reason, shown)


# By whether decode's share is above the line in the requests' view, and so not in the engine's.
_INTERFERENCE = {
    True: "prefill steps delay the decode of other requests",
    False: "requests stay in prefill while the engine decodes others",
}


def decode_rule(evidence: RuleEvidence, t: Thresholds) -> RuleResult:
    """Decode takes most of the time, seen from the requests and from the engine.

    Where no model splits mixed steps, bounds settle the engine's view one way each.
    """
    text = f"decode share > {t.decode_share:.2f}, from requests and from the engine"
    requests, engine = evidence.decode_requests, evidence.decode_engine
    shown = tuple(m for m in (requests, *engine) if m is not None)
    if requests is None or not engine:
        missing = "decode_requests" if requests is None else "decode_engine"
        return RuleResult("decode-focus", text, UNSEEN, evidence.why[missing], shown)
    by_request, (by_engine, _) = requests.value > t.decode_share, is_above(engine, t.decode_share)
    numbers = f"{requests.value:.3f} of the requests' time, {_of_steps(engine)} of step time"
    if by_request and by_engine is None:
        why = "no cost model tells how much of the mixed steps is decode"
        return RuleResult("decode-focus", text, UNSEEN, f"{numbers}: {why}", shown)
    if by_engine is not None and by_request != by_engine:
        why = f"the two views disagree: {_INTERFERENCE[by_request]}"
        return RuleResult("decode-focus", text, NOT_MET, f"{numbers}; {why}", shown)
    status = MET if by_request else NOT_MET
    return RuleResult("decode-focus", text, status, numbers, shown)


def _of_steps(engine: Sequence[Measure]) -> str:
    value = next((m for m in engine if m.side is None), None)
    if value is not None:
        return f"{value.value:.3f}"
    return " to ".join(f"{m.value:.3f}" for m in engine)


def evaluate(evidence: RuleEvidence, t: Thresholds) -> tuple[RuleResult, ...]:
    """Evaluate the four rules."""
    return (
        capacity_rule(evidence, t),
        bandwidth_rule(evidence, t),
        scheduling_rule(evidence, t),
        decode_rule(evidence, t),
    )


def by_id(rules: Sequence[RuleResult], rule_id: str) -> RuleResult:
    """Find a rule's result."""
    return next(r for r in rules if r.id == rule_id)
