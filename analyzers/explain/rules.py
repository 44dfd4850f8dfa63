"""The document's rules as steps of the derivation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stallscope.analyzers.explain.result import Comparison, ExplainStep, Term
from stallscope.analyzers.explain.terms import compared, of_measure
from stallscope.analyzers.result import RuleResult
from stallscope.analyzers.rules import DECODE_TRAFFIC_EXCESS, NOT_MET
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.evidence import Measure

# By rule: how a measure's name begins, and the line it is held against.
_LINES = {
    "capacity": (("memory_used", "≥", "near_limit"),),
    "bandwidth": (
        *((name, "<", "sm_low") for name in ("sm_throughput", "mfu", "gpu_busy", "tensor")),
        *((name, ">", "dram_high") for name in ("dram_throughput", "mbu")),
    ),
    "scheduling": (
        ("queue_wait_share", "≥", "queue_wait_share"),
        ("", "≤", "utilisation_not_high"),
    ),
    "decode-focus": (("decode_share", ">", "decode_share"),),
}
ONE_FAILURE = 1.0


def explain_rules(rules: Sequence[RuleResult], t: Thresholds) -> tuple[ExplainStep, ...]:
    """Return a step for each rule, with each number against its line."""
    return tuple(
        ExplainStep(
            id=f"rule-{rule.id}",
            question=f"By the document: {rule.text}?",
            answer=rule.status,
            because=rule.reason,
            terms=(*map(of_measure, rule.measures), *_at_most(rule)),
            comparisons=(*_comparisons(rule, t), *_ruled_out(rule, t)),
        )
        for rule in rules
    )


def _at_most(rule: RuleResult) -> tuple[Term, ...]:
    """Return the most that DRAM can have run at by what must move, where that settled the rule."""
    if rule.status != NOT_MET or not rule.reason.endswith("(estimated)"):
        return ()
    moved = next((m for m in rule.measures if m.name == "mbu"), None)
    if moved is None:
        return ()
    most, formula = DECODE_TRAFFIC_EXCESS * moved.value, f"{DECODE_TRAFFIC_EXCESS} * mbu"
    return (Term("dram_at_most", most, "fraction", "estimated", "", None, formula),)


def _ruled_out(rule: RuleResult, t: Thresholds) -> tuple[Comparison, ...]:
    return tuple(compared(term, ">", t.dram_high, "dram_high") for term in _at_most(rule))


def _comparisons(rule: RuleResult, t: Thresholds) -> Iterator[Comparison]:
    for m in rule.measures:
        if m.name == "allocation_failures":
            yield compared(of_measure(m), "≥", ONE_FAILURE)
            continue
        found = _line(rule.id, m)
        if found is not None:
            sign, threshold = found
            yield compared(of_measure(m), sign, getattr(t, threshold), threshold)


def _line(rule: str, m: Measure) -> tuple[str, str] | None:
    return next(((s, name) for start, s, name in _LINES[rule] if m.name.startswith(start)), None)
