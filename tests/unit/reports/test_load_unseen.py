"""Where nothing told the load, no part of a report names one."""

from __future__ import annotations

from dataclasses import replace

from stallscope.analyzers.result import Diagnosis, Window
from stallscope.reports import terminal

WINDOWS = tuple(Window(i, i + 1.0, "undetermined", "served", None) for i in range(2))


def report(of: Diagnosis, **facts: object) -> str:
    seen = replace(of, phases=(), latency={}, windows=WINDOWS, measures=(), **facts)
    seen = replace(seen, verdict=replace(of.verdict, load="served"))
    return " ".join(terminal.render(seen).split())


def test_neither_the_line_nor_the_chart_tells_a_load(busy: Diagnosis) -> None:
    said = report(busy)
    assert "Load not observable: nothing recorded tells how many requests ran or waited" in said
    assert ", served" not in said


def test_where_something_tells_it_both_do(busy: Diagnosis) -> None:
    said = " ".join(terminal.render(replace(busy, windows=WINDOWS)).split())
    assert "Load not observable" not in said
    assert "undetermined, served" in said
