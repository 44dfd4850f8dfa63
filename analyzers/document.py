"""What the document's rules add up to, and why the verdict differs where it does."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.result import DocumentVerdict, RuleResult
from stallscope.analyzers.rules import MET, NOT_MET, by_id

_CLASS_RULES = ("capacity", "bandwidth", "scheduling")


_OTHER_VIEW = {
    "bandwidth": "yet reading weights and KV, at the speed {speed}, "
    "is the largest known part of the step",
    "scheduling": "yet requests queue, and not for KV room",
}
_WITHOUT_BUDGET = "yet the counters and kernels that were seen point to reading memory"
_NOT_ENOUGH = {
    "undetermined": "the evidence does not settle what limits the run",
    "none": "nothing waits and the engine idles",
}


def _other_view(bottleneck: str, budget_by: str | None) -> str:
    if bottleneck == "bandwidth" and budget_by is None:
        return _WITHOUT_BUDGET
    is_stated = budget_by == "datasheet"
    speed = "of the datasheet" if is_stated else "this device reaches at these shapes"
    return _OTHER_VIEW[bottleneck].format(speed=speed)


def _own_rule(rule: RuleResult, preempts: bool, budget_by: str | None) -> str:
    """Say why the verdict's own rule is not met."""
    if rule.status != NOT_MET:
        return f"the {rule.id} rule cannot be observed here: {rule.reason}"
    if rule.id != "capacity":
        return f"the {rule.id} rule is not met ({rule.reason}), {_other_view(rule.id, budget_by)}"
    if any(m.name == "allocation_failures" and m.value > 0 for m in rule.measures):
        return f"an allocation was refused, but {rule.reason}: it asked for more than was free"
    does = "this engine preempts instead" if preempts else "requests wait for KV room instead"
    return f"no OOM: {does} ({rule.reason})"


def _difference(
    bottleneck: str, rules: Sequence[RuleResult], *, preempts: bool, budget_by: str | None
) -> str:
    own = by_id(rules, bottleneck) if bottleneck in _CLASS_RULES else None
    others = [r for r in rules if r.status == MET and r.id in _CLASS_RULES and r is not own]
    says = " and ".join(f"the {r.id} rule is met ({r.reason})" for r in others)
    if own is not None and own.status == MET:
        return f"{says} as well, but {bottleneck} binds first"
    if own is not None:
        return "; ".join(filter(None, (says, _own_rule(own, preempts, budget_by))))
    if says:
        decides = "the step budget decides" if budget_by else "what else was observed decides"
        return f"{says}, but {_NOT_ENOUGH.get(bottleneck, f'{decides} otherwise')}"
    return f"the rules know no {bottleneck} class"


def document_verdict(
    bottleneck: str,
    rules: Sequence[RuleResult],
    *,
    preempts: bool,
    budget_by: str | None = "achievable",
) -> DocumentVerdict:
    """Sum the rules up in one line; `differs_because` is None where rules and verdict agree.

    `budget_by` names the peaks of the step budget that the verdict could rest on ("datasheet" or
    "achievable"); None where there was no budget.
    """
    classes = tuple(r.id for r in rules if r.status == MET and r.id in _CLASS_RULES)
    is_focus = by_id(rules, "decode-focus").status == MET
    unseen = [r.id for r in rules if r.status not in (MET, NOT_MET)]
    parts = [" and ".join(classes) if classes else "no bottleneck shown"]
    if is_focus:
        parts.append("optimise decode first")
    if unseen:
        parts.append(f"not observable: {', '.join(unseen)}")
    agrees = classes == (bottleneck,) or (not classes and bottleneck in ("none", "undetermined"))
    why = None
    if not agrees:
        why = _difference(bottleneck, rules, preempts=preempts, budget_by=budget_by)
    return DocumentVerdict(
        classes=classes,
        advice="decode first" if is_focus else None,
        differs_because=why,
        sentence="By the document's rules: " + "; ".join(parts) + ".",
    )
