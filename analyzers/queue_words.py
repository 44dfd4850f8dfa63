"""Sentences about a queue: what held it, what lifting that buys, and what binds then."""

from __future__ import annotations

import statistics
from collections.abc import Mapping

from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.load.queue_limits import LIMIT_CLASS, Admission
from stallscope.analyzers.put_back_words import inferred_text
from stallscope.analyzers.result import Gain
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.replay import WhatIf
from stallscope.analyzers.words import percent
from stallscope.profiler.evidence import Measure

_STANDS = "The engine stands still"
_TELLING = 1.0  # a bound on a gain that is larger than this says nothing
_FULL = 0.95  # a KV pool that was ever this full had no room to speak of
_HELD = {
    "seqs": "Requests queue at the sequence cap",
    "tokens": "Prompts use up the token budget and the rest queue",
    "prefill": "Prompts are prefilled at a steady rate under every cap and the rest queue",
    "batch": "Requests queue behind a static batch, which takes nobody in until its last one ends",
    "stalled": "The engine makes no progress with KV free",
    "deferred": "The scheduler puts requests off for something other than room",
    "front": "Requests queue in front of the scheduler",
    "imbalance": "Requests queue at one engine while another has room",
}
_LIFT = {
    "kv": "more KV room",
    "seqs": "raising the cap",
    "tokens": "a larger token budget",
    "batch": "batching continuously",
}
# What binds after a limit is lifted: another limit of these classes, or else the step itself.
_ADMISSION = {LIMIT_CLASS[limit] for limit in ("kv", "seqs")}


def kv_has_room(found: Mapping[str, Measure]) -> bool:
    """Tell whether the KV pool was seen, and never full."""
    peak = found.get("kv_used_peak")
    return peak is not None and peak.value < _FULL


def queue_text(judgement: Judgement) -> str:
    """Say how much waits."""
    demand = judgement.demand
    if demand.waiting is None or demand.queued_share is None or demand.in_flight is None:
        return "requests queue"
    counted = f"{demand.count(demand.waiting)} of {demand.count(demand.in_flight)}"
    whose = "them" if demand.is_moment else "their time"
    return (
        f"{counted} requests in flight wait {demand.when} "
        f"({percent(demand.queued_share)} of {whose})"
    )


_UNTOLD = "by how much cannot be told"


def _change(gain: Gain) -> float:
    return gain.after / gain.before - 1.0


def gain_text(gain: Gain) -> str:
    """Say a predicted change with its error; no number where the error is as large."""
    if not gain.is_told:
        return f"more {gain.unit}, {_UNTOLD}"
    return f"{_change(gain) * 100:+.0f} % {gain.unit} (± {percent(gain.error)})"


def lifted_text(limit: str | None, whatif: WhatIf | None, t: Thresholds) -> str:
    """Say what lifting the limit would buy, and what binds after it."""
    if whatif is None:
        return ""
    gain, action = whatif.gain, _LIFT.get(limit or "", "lifting it")
    change = _change(gain)
    if whatif.is_bound and _most(gain) > _TELLING:
        return f"; what {action} would buy cannot be told"
    if whatif.is_bound and _most(gain) >= t.small_gain:
        return f"; {action} would buy at most {percent(_most(gain))} {gain.unit}"
    if not whatif.is_bound and change >= t.small_gain:
        after = f", then {whatif.next_limit} binds" if whatif.next_limit else ""
        return f"; {action} would buy {gain_text(gain)}{after}"
    unsure = max(0.0, change) + gain.error >= t.limit_margin - 1.0
    if unsure and not whatif.is_bound:  # it may be no small gain at all
        return f"; what {action} would buy cannot be told"
    why = "the step itself is the limit"
    if whatif.next_limit in _ADMISSION:
        why = f"{whatif.next_limit} binds right behind it"
    little = _little(gain)
    if whatif.is_bound:
        little = f"at most {percent(_most(gain))}" if _most(gain) >= 0.005 else "nothing"
    return f", but {action} buys {little}: {why}"


def _most(gain: Gain) -> float:
    """Return the largest change that the error leaves open."""
    return gain.after * (1.0 + gain.error) / gain.before - 1.0


def _little(gain: Gain) -> str:
    change = _change(gain)
    if not gain.is_told:
        return f"at most {percent(max(0.0, change) + gain.error)}"
    return f"only about {percent(change)}" if change > 0 else "nothing"


def _capacity(judgement: Judgement, found: Mapping[str, Measure]) -> str:
    preempted = found.get("preemptions")
    count = preempted.value if preempted is not None else 0
    if judgement.preemption is not None:
        times = f" ({count:.0f} preemptions)" if count > 1 else ""
        return f"The KV cache is full: {judgement.decision.reason}{times}"
    text = f"The KV cache is full: {queue_text(judgement)}"
    inferred = found.get("preemptions_inferred")
    if inferred is not None and inferred.value > count:
        return f"{text}, and {inferred_text(inferred)}"
    if not count:
        return text
    times = "once" if count == 1 else f"{count:.0f} times"
    if preempted is not None and preempted.side == "lower":
        times = f"at least {times}"
    return f"{text}, and running requests were preempted {times}"


def held_text(judgement: Judgement, found: Mapping[str, Measure]) -> str:
    """Say what held the queue, or what preemption cost where that decided."""
    limit = judgement.decision.limit
    if limit is None or limit == "kv":
        return _capacity(judgement, found)
    if limit == "stalled" and judgement.admission is None:
        reason = judgement.decision.reason
        return reason if reason.startswith(_STANDS) else f"{_STANDS}: {reason}"
    text = _HELD[limit]
    if limit == "seqs" and judgement.admission is not None and judgement.admission.cap is not None:
        text += f" of {judgement.admission.cap}"
    if limit == "tokens" and judgement.admission is not None and judgement.admission.budget:
        budget = f"{judgement.admission.budget:,}"
        text = f"Prompts use up the token budget of {budget} a batch and the rest queue"
    if limit == "seqs" and kv_has_room(found):
        text += " while KV has room"
    text = f"{text}: {queue_text(judgement)}"
    if limit == "imbalance" and judgement.admission is not None:
        text += _uneven_text(judgement.admission)
    return text


def _uneven_text(admission: Admission) -> str:
    engines = admission.in_flight
    if not engines:
        return ""
    named = f" ({admission.fullest})" if admission.fullest else ""
    text = f"; the fullest of {len(engines)} engines{named} holds {engines[0]:.1f} requests, "
    return f"{text}their mean is {statistics.fmean(engines):.1f}"
