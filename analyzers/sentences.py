"""The verdict in one sentence, with its numbers."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.result import Gain
from stallscope.analyzers.step.limit import MUCH_UNEXPLAINED, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.replay import WhatIf
from stallscope.analyzers.words import both, percent
from stallscope.profiler.evidence import Measure


def _queue_text(judgement: Judgement) -> str:
    demand = judgement.demand
    if demand.waiting is None or demand.queued_share is None:
        return "requests queue"
    return (
        f"{demand.waiting:.1f} of {demand.in_flight:.1f} requests in flight wait on average "
        f"({percent(demand.queued_share)} of their time)"
    )


def gain_text(gain: Gain) -> str:
    """Say a predicted change with its error."""
    change = gain.after / gain.before - 1.0
    return f"{change * 100:+.0f} % {gain.unit} (± {percent(gain.error)})"


def _lifted(action: str, whatif: WhatIf | None, t: Thresholds) -> str:
    if whatif is None:
        return ""
    gain = whatif.gain
    if gain.after / gain.before - 1.0 < t.small_gain:
        most = max(0.0, gain.after / gain.before - 1.0)
        return f", but {action} buys only about {percent(most)}: the step itself is the limit"
    after = f", then {whatif.next_limit} binds" if whatif.next_limit else ""
    return f"; {action} would buy {gain_text(gain)}{after}"


def _capacity(judgement: Judgement, found: Mapping[str, Measure]) -> str:
    preempted = found.get("preemptions")
    text = f"The KV cache is full: {_queue_text(judgement)}"
    if preempted is not None and preempted.value:
        times = "once" if preempted.value == 1 else f"{preempted.value:.0f} times"
        text += f", and running requests were preempted {times}"
    return text


def _served(judgement: Judgement, cause: str) -> str:
    decision = judgement.decision
    text = f"{cause}: {decision.reason}"
    if decision.next_class is not None:
        text += f"; next is {decision.next_class} at {percent(decision.next_share)}"
    return text


def _undetermined(decision: Decision, trace: str) -> str:
    between = f" between {both(decision.between)}" if decision.between else ""
    text = f"Undetermined{between}: {decision.reason}."
    if decision.share > 0 and decision.unexplained >= MUCH_UNEXPLAINED:
        text += f" To tell what the rest is, {trace}."
    return text


# Out of memory, and what a check of the capture found, come with any load.
_ALONE = {
    "capacity": "Memory capacity limits this run",
    "telemetry": "The telemetry cannot be believed",
    "profiler": "The profiler itself disturbed the run",
}
_SERVED = {
    **_ALONE,
    "scheduling": "The scheduler limits this run",
    "bandwidth": "Memory bandwidth limits the step",
    "compute": "Arithmetic limits the step",
    "host": "The host limits the step",
    "interconnect": "The interconnect limits the step",
    "device": "The device runs below its clocks",
    "client": "The client does not send what it says it offers",
}
_QUEUED = {
    "scheduling": "Requests queue at the sequence cap while KV has room",
    "compute": "Prompts use up the token budget of every step and the rest queue",
    "host": "Requests queue in front of the scheduler",
}
_LIFT = {
    "capacity": "more KV room",
    "scheduling": "raising the cap",
    "compute": "a larger token budget",
}


def verdict_sentence(
    judgement: Judgement,
    found: Mapping[str, Measure],
    whatif: WhatIf | None,
    *,
    trace: str,
    t: Thresholds,
) -> str:
    """Say what limits the run, why, and what lifting it would buy.

    `trace` says how to look into unexplained time.
    """
    bottleneck, decision = judgement.bottleneck, judgement.decision
    if bottleneck == "none":
        return f"Nothing limits this run: {decision.reason}."
    if bottleneck == "undetermined":
        return _undetermined(decision, trace)
    if judgement.admission is None:
        return _served(judgement, _SERVED[bottleneck]) + "."
    if bottleneck == "capacity":
        text = _capacity(judgement, found)
    else:
        text = f"{_QUEUED[bottleneck]}: {_queue_text(judgement)}"
        if decision.limit == "stalled":
            text = f"The engine makes no progress with KV free: {_queue_text(judgement)}"
    return text + _lifted(_LIFT.get(bottleneck, "lifting it"), whatif, t) + "."
