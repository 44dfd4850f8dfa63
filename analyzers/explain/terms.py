"""Terms and comparisons of a derivation, from measures, budgets and arithmetic."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.explain.result import Comparison, Term
from stallscope.analyzers.result import PhaseBudget
from stallscope.profiler.evidence import BoundSide, Measure, Provenance

_SURE: tuple[Provenance, ...] = ("estimated", "bound", "derived", "measured")


def of_measure(m: Measure) -> Term:
    """Take a measure as it is."""
    return Term(m.name, m.value, m.unit, m.provenance, m.source, m.side)


def seen(found: Mapping[str, Measure], *names: str) -> tuple[Term, ...]:
    """Take those of some measures that there are."""
    return tuple(of_measure(found[name]) for name in names if name in found)


def of_budget(budget: PhaseBudget) -> tuple[Term, ...]:
    """Take each part's share of the time of all steps."""
    return tuple(
        Term(p.part, p.share, "fraction", p.provenance, p.source, p.side) for p in budget.budget
    )


def worked_out(
    name: str,
    value: float,
    formula: str,
    operands: tuple[Term, ...],
    *,
    side: BoundSide | None = None,
) -> Term:
    """Make a term of arithmetic on others; it is as sure as the least sure of them."""
    used = [_SURE.index(o.provenance) for o in operands]
    provenance = _SURE[min([*used, _SURE.index("derived")])]
    return Term(name, value, "fraction", provenance, "arithmetic on the terms above", side, formula)


def compared(term: Term, sign: str, limit: float, threshold: str | None = None) -> Comparison:
    """Compare a term with a line; a bound settles it one way only."""
    holds: bool | None = _holds(term.value, sign, limit)
    is_upward = sign in (">", "≥")
    if term.side == "lower" and holds is not is_upward:
        holds = None
    if term.side == "upper" and holds is is_upward:
        holds = None
    return Comparison(term.name, term.value, sign, limit, threshold, holds, term.value - limit)


def _holds(value: float, sign: str, limit: float) -> bool:
    match sign:
        case "<":
            return value < limit
        case "≤":
            return value <= limit
        case "≥":
            return value >= limit
        case _:
            return value > limit
