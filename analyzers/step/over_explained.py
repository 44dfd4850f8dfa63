"""Phases whose parts exceed their measured time, which a sum over all phases hides."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.step.limit import IN_KERNELS, Decision, part_share
from stallscope.analyzers.words import percent

_OVER = 0.10  # of a phase's time: more than this explained beyond it is no rounding
_HARDLY = 0.05  # of all time: a shorter phase moves the sum by little
_MOST_SURE = 0.5  # of a class that stands on a speed which one phase has shown to be wrong


def over_explained(budgets: Sequence[PhaseBudget]) -> tuple[PhaseBudget, ...]:
    """Return the phases explained to more than 110 %, where others are summed with them."""
    phases = [b for b in budgets if b.phase != "all"]
    return tuple(
        b
        for b in phases
        if len(phases) > 1 and b.share >= _HARDLY and part_share(b, "unexplained") < -_OVER
    )


def with_phases(decision: Decision, budgets: Sequence[PhaseBudget]) -> Decision:
    """Say so beside a class that memory's or arithmetic's speed decided, and be less sure of it."""
    wrong = over_explained(budgets)
    if decision.bottleneck not in IN_KERNELS or decision.limit is not None or not wrong:
        return decision
    told = " and ".join(f"{b.phase} to {percent(_explained(b))}" for b in wrong)
    reason = f"{decision.reason}, yet the same speeds explain {told} of its time"
    return dataclasses.replace(decision, reason=reason, cap=min(decision.cap, _MOST_SURE))


def phases_note(budgets: Sequence[PhaseBudget]) -> tuple[str, ...]:
    """Say which speed was too low for which phase, and that the sum over phases hides it."""
    return tuple(_note(b) for b in over_explained(budgets))


def _note(budget: PhaseBudget) -> str:
    memory, arithmetic = part_share(budget, "weights", "kv"), part_share(budget, "compute")
    part = "compute" if arithmetic >= memory else "weights"
    speed = "peak of arithmetic" if part == "compute" else "memory bandwidth"
    source = next((p.source for p in budget.budget if p.part == part), "")
    whose = "datasheet's" if "datasheet" in source else "probed"
    return (
        f"{budget.phase}: its parts are {percent(_explained(budget))} of its measured time: the "
        f"{whose} {speed} was too low for it. What is unexplained of all phases together is a sum "
        "in which that cancels; read each phase's own."
    )


def _explained(budget: PhaseBudget) -> float:
    return 1.0 - part_share(budget, "unexplained")
