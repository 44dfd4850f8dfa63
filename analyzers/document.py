"""What the document's rules add up to, and why the verdict differs where it does."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.result import DocumentVerdict, RuleResult
from stallscope.analyzers.rules import MET, NOT_MET, by_id

_CLASS_RULES = ("capacity", "bandwidth", "scheduling")


def _difference(bottleneck: str, rules: Sequence[RuleResult], preempts: bool) -> str:
    met = [r for r in rules if r.status == MET and r.id in _CLASS_RULES]
    if bottleneck in _CLASS_RULES:
        rule = by_id(rules, bottleneck)
        if bottleneck == "capacity" and rule.status == NOT_MET:
            does = (
                "this engine preempts instead" if preempts else "requests wait for KV room instead"
            )
            return f"no OOM: {does}; {rule.reason}"
        if rule.status == NOT_MET:
            return f"the {bottleneck} rule is not met ({rule.reason}), {_OTHER_VIEW[bottleneck]}"
        return f"the {bottleneck} rule cannot be observed here: {rule.reason}"
    if met:
        names = " and ".join(r.id for r in met)
        but = _NOT_ENOUGH.get(bottleneck, "the step budget decides otherwise")
        return f"the {names} rule is met ({met[0].reason}), but {but}"
    return f"the rules know no {bottleneck} class"


_OTHER_VIEW = {
    "bandwidth": "yet reading weights and KV at the speed this device reaches at these shapes "
    "is the largest part of the step",
    "scheduling": "yet requests queue at the sequence cap with KV to spare",
}
_NOT_ENOUGH = {
    "undetermined": "too much of the step is unexplained to name its limit",
    "none": "nothing waits and the engine idles",
}


def document_verdict(
    bottleneck: str, rules: Sequence[RuleResult], *, preempts: bool
) -> DocumentVerdict:
    """Sum the rules up in one line; `differs_because` is None where rules and verdict agree."""
    classes = tuple(r.id for r in rules if r.status == MET and r.id in _CLASS_RULES)
    is_focus = by_id(rules, "decode-focus").status == MET
    unseen = [r.id for r in rules if r.status not in (MET, NOT_MET)]
    parts = [" and ".join(classes) if classes else "no class"]
    if is_focus:
        parts.append("optimise decode first")
    if unseen:
        parts.append(f"not observable: {', '.join(unseen)}")
    agrees = classes == (bottleneck,) or (not classes and bottleneck in ("none", "undetermined"))
    return DocumentVerdict(
        classes=classes,
        advice="decode first" if is_focus else None,
        differs_because=None if agrees else _difference(bottleneck, rules, preempts),
        sentence="By the document's rules: " + "; ".join(parts) + ".",
    )
