"""The findings a verdict may rest on, by the names under which docs/findings.md explains them."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.load.queue_limits import LIMIT_CLASS

# What the document's four rules find, whatever the verdict is.
RULES = ("rule-capacity", "rule-bandwidth", "rule-scheduling", "rule-decode-focus")
_BY_BRANCH: Mapping[str, str] = {
    "sender": "client-rate",
    "client": "client-load",
    "front": "in-front",
    "load": "no-load",
    "hang": "hang",
}
_OF_CHECK: Mapping[str, str] = {
    "capacity": "out-of-memory",
    "telemetry": "telemetry",
    "profiler": "profiler",
}
_OF_STEP: Mapping[str, str] = {
    "bandwidth": "step-bandwidth",
    "compute": "step-compute",
    "host": "step-host",
    "interconnect": "step-interconnect",
    "device": "slow-clocks",
}
_LIMITS = tuple(f"limit-{limit}" for limit in LIMIT_CLASS)
_STATED = ("kv-copied", "paged-out", "starved", "cores-taken")  # by the decision itself
_OPEN = ("queue-unseen", "step-unsettled", "no-evidence")
FINDINGS = tuple(
    dict.fromkeys(
        (*RULES, *_OF_CHECK.values(), *_STATED, *_BY_BRANCH.values(), *_LIMITS)
        + ("preemption", "full-pool", *_OF_STEP.values(), *_OPEN)
    )
)


def finding_of(judgement: Judgement) -> str:
    """Name what a verdict found: one of FINDINGS."""
    decision, branch = judgement.decision, judgement.branch
    if judgement.preemption is not None:
        return "preemption"
    if judgement.cliff is not None:
        return "full-pool"
    if decision.finding is not None:
        return decision.finding
    if branch in _BY_BRANCH:
        return _BY_BRANCH[branch]
    if decision.limit is not None:
        return f"limit-{decision.limit}"
    if branch == "check":
        return _OF_CHECK.get(decision.bottleneck, "no-evidence")
    if decision.bottleneck in _OF_STEP:
        return _OF_STEP[decision.bottleneck]
    return "queue-unseen" if branch == "queue" else "step-unsettled"
