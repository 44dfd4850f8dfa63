"""How the parts of a step's budget were found, and why operators may add up to more than they."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stallscope.analyzers.result import BudgetPart, Diagnosis, PhaseBudget
from stallscope.reports import terminal


def phase(name: str, compute: str) -> PhaseBudget:
    parts = (
        BudgetPart("compute", 0.6, 0.6, "estimated", compute),
        BudgetPart("host", 0.4, 0.4, "measured", "gaps between steps"),
    )
    return PhaseBudget(name, 10, 1.0, 0.5, 0.1, parts)


def said(of: Diagnosis, *phases: PhaseBudget) -> str:
    return " ".join(terminal.render(replace(of, phases=phases)).split())


def test_sources_that_differ_name_their_phases(busy: Diagnosis) -> None:
    told = said(
        busy,
        phase("prefill", "6 % probed"),
        phase("decode", "roofline"),
        phase("all", "6 % probed"),
    )
    assert (
        "compute (prefill, all): 6 % probed; compute (decode): roofline; host: gaps between steps."
    ) in told


def test_one_source_for_all_is_said_once(busy: Diagnosis) -> None:
    told = said(busy, phase("prefill", "roofline"), phase("decode", "roofline"))
    assert "How each part was found. compute: roofline; host: gaps between steps." in told


@pytest.mark.parametrize(
    ("bound", "explained_s", "adds_up", "neither"),
    [
        ("neither", 0.0004, True, True),
        ("memory", 0.0006, True, False),
        ("memory", 0.001, False, False),
    ],
)
def test_operators_that_add_up_to_more_say_why(
    busy: Diagnosis, bound: str, explained_s: float, adds_up: bool, neither: bool
) -> None:
    row = replace(busy.operators[0], bound=bound, time_s=0.001, explained_s=explained_s)
    told = " ".join(terminal.render(replace(busy, operators=(row,))).split())
    assert ("the times here add up to more than those parts" in told) is adds_up
    assert ("Limited by neither" in told) is neither
