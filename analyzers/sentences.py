"""The verdict in one sentence, with its numbers."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.host_idle import host_idle, idle_text
from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.queue_words import held_text, lifted_text
from stallscope.analyzers.step.core_wait import FINDING as CORES_TAKEN
from stallscope.analyzers.step.limit import MUCH_UNEXPLAINED, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.link_remedies import link_text
from stallscope.analyzers.whatif.replay import WhatIf
from stallscope.analyzers.words import both, percent
from stallscope.profiler.evidence import Measure


def _served(judgement: Judgement, found: Mapping[str, Measure]) -> str:
    decision = judgement.decision
    who = _FOUND.get(decision.finding or "", _SERVED[decision.bottleneck])
    if judgement.branch == "front" and decision.bottleneck == "host":
        who = "The host limits this run"
    text = f"{who}: {decision.reason}"
    more = _traced_text(decision.bottleneck, found)
    if more is not None:
        text += f"; {more}"
    if decision.next_class is not None:
        text += f"; next is {decision.next_class}"
        if judgement.cliff is None:  # its next share is the line that its cost crossed
            text += f" at {percent(decision.next_share)}"
    return text


def _traced_text(bottleneck: str, found: Mapping[str, Measure]) -> str | None:
    if bottleneck == "interconnect":
        return link_text(found)
    idle = host_idle(found) if bottleneck == "host" else None
    return None if idle is None else idle_text(idle)


def _undetermined(decision: Decision, trace: str) -> str:
    text = f"Undetermined{_between(decision.between)}: {decision.reason}."
    if decision.share > 0 and decision.unexplained >= MUCH_UNEXPLAINED:
        text += f" To tell what the rest is, {trace}."
    return text


def _between(candidates: tuple[str, ...]) -> str:
    if len(candidates) == 1:
        return f", perhaps {candidates[0]}"
    return f" between {both(candidates)}" if candidates else ""


# Out of memory, and what a check of the capture found, come with any load.
_ALONE = {
    "capacity": "Memory capacity limits this run",
    "telemetry": "The telemetry cannot be believed",
    "profiler": "What was recorded cannot answer",
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
_FOUND = {CORES_TAKEN: "Others take the cores that the step needs"}  # by finding


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
    if decision.headline is not None:
        return decision.headline
    if bottleneck == "none":
        return f"Nothing limits this run: {decision.reason}."
    if bottleneck == "undetermined":
        return _undetermined(decision, trace)
    if decision.limit is None:
        return _served(judgement, found) + "."
    return held_text(judgement, found) + lifted_text(decision.limit, whatif, t) + "."
