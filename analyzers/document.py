"""What the document's rules add up to, and why the verdict differs where it does."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.result import DocumentVerdict, RuleResult
from stallscope.analyzers.rules import MET, NOT_MET, by_id

_CLASS_RULES = ("capacity", "bandwidth", "scheduling")
PREFIX = "By the document's rules: "
WIDTH = 80  # of a terminal: the line is never broken


_OTHER_VIEW = {
    "bandwidth": "yet reading weights and KV, at the speed {speed}, "
    "is the largest known part of the step",
    "scheduling": "yet requests queue, and not for KV room",
}
_WITHOUT_BUDGET = "yet the counters and kernels that were seen point to reading memory"
_WITHOUT_QUEUE = "yet requests that were let in get hardly a token, or none"
_NOT_ENOUGH = {
    "undetermined": "the evidence does not settle what limits the run",
    "none": "the engine idles for most of the time",
}


def _other_view(bottleneck: str, budget_by: str | None, *, queues: bool) -> str:
    if bottleneck == "bandwidth" and budget_by is None:
        return _WITHOUT_BUDGET
    if bottleneck == "scheduling" and not queues:
        return _WITHOUT_QUEUE
    is_stated = budget_by == "datasheet"
    speed = "of the datasheet" if is_stated else "this device reaches at these shapes"
    return _OTHER_VIEW[bottleneck].format(speed=speed)


def _own_rule(rule: RuleResult, budget_by: str | None, *, preempts: bool, queues: bool) -> str:
    """Say why the verdict's own rule is not met."""
    if rule.status != NOT_MET:
        return f"the {rule.id} rule cannot be observed here: {rule.reason}"
    if rule.id != "capacity":
        view = _other_view(rule.id, budget_by, queues=queues)
        return f"the {rule.id} rule is not met ({rule.reason}), {view}"
    if any(m.name == "allocation_failures" and m.value > 0 for m in rule.measures):
        return f"an allocation was refused, but {rule.reason}: it asked for more than was free"
    does = "this engine preempts instead" if preempts else "requests wait for KV room instead"
    return f"no OOM: {does} ({rule.reason})"


def _difference(
    bottleneck: str,
    rules: Sequence[RuleResult],
    *,
    preempts: bool,
    queues: bool,
    budget_by: str | None,
) -> str:
    own = by_id(rules, bottleneck) if bottleneck in _CLASS_RULES else None
    others = [r for r in rules if r.status == MET and r.id in _CLASS_RULES and r is not own]
    says = " and ".join(f"the {r.id} rule is met ({r.reason})" for r in others)
    if own is not None and own.status == MET:
        return f"{says} as well, but {bottleneck} binds first"
    if own is not None:
        why = _own_rule(own, budget_by, preempts=preempts, queues=queues)
        return "; ".join(filter(None, (says, why)))
    if says:
        decides = "the step budget decides" if budget_by else "what else was observed decides"
        return f"{says}, but {_NOT_ENOUGH.get(bottleneck, f'{decides} otherwise')}"
    return f"the rules know no {bottleneck} class"


def _line(classes: Sequence[str], *, is_focus: bool, unseen: Sequence[str]) -> str:
    """Say it in WIDTH columns: the rules that could not be observed by name, else how many."""
    told = ", ".join(classes) if classes else "no bottleneck shown"
    told += "; decode first" if is_focus else ""
    if not unseen:
        return f"{PREFIX}{told}."
    named = f"{PREFIX}{told}; not observable: {', '.join(unseen)}."
    return named if len(named) <= WIDTH else f"{PREFIX}{told}; {len(unseen)} not observable."


def document_verdict(
    bottleneck: str,
    rules: Sequence[RuleResult],
    *,
    preempts: bool,
    queues: bool = True,
    budget_by: str | None = "achievable",
) -> DocumentVerdict:
    """Sum the rules up in one line; `differs_because` is None where rules and verdict agree.

    `queues` is False where the verdict rests on no queue. `budget_by` names the peaks of the step
    budget that it could rest on ("datasheet" or "achievable"); None where there was no budget.
    """
    classes = tuple(r.id for r in rules if r.status == MET and r.id in _CLASS_RULES)
    is_focus = by_id(rules, "decode-focus").status == MET
    unseen = [r.id for r in rules if r.status not in (MET, NOT_MET)]
    agrees = classes == (bottleneck,) or (not classes and bottleneck in ("none", "undetermined"))
    why = None
    if not agrees:
        why = _difference(bottleneck, rules, preempts=preempts, queues=queues, budget_by=budget_by)
    return DocumentVerdict(
        classes=classes,
        advice="decode first" if is_focus else None,
        differs_because=why,
        sentence=_line(classes, is_focus=is_focus, unseen=unseen),
    )
