"""Rates in a plan's tables: what tells two slow ones apart is shown."""

from __future__ import annotations

import pytest

from stallscope.analyzers.plan.result import LinkRow
from stallscope.reports.blocks import Table
from stallscope.reports.plan_tables import links_of


@pytest.mark.parametrize(
    ("rate", "text"),
    [(1.4, "1.40"), (2.6, "2.60"), (0.0312, "0.0312"), (86.42, "86.4"), (1234.5, "1,234")],
)
def test_slow_links_are_told_apart_by_their_tokens(rate: float, text: str) -> None:
    row = LinkRow(None, 32e9, 16e9, 0.0, 0.8, 0.9, 1 / rate, rate)
    (table, _) = links_of([row]).blocks
    assert isinstance(table, Table)
    assert table.rows[0][-1] == text
