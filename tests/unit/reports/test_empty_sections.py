"""A section that has nothing to show is not begun."""

from __future__ import annotations

from dataclasses import replace

from stallscope.analyzers.result import Diagnosis
from stallscope.reports import terminal
from stallscope.reports.time_sections import operators_of


def test_no_operators_no_section(busy: Diagnosis) -> None:
    assert operators_of((), "Ridge point: 295 FLOP/byte", has_budget=False).blocks == ()
    assert "Operators of one step" in terminal.render(busy)
    assert "Operators of one step" not in terminal.render(replace(busy, operators=()))
