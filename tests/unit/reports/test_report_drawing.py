"""Bars and strips, cell by cell."""

from __future__ import annotations

import math

import pytest

from stallscope.reports.drawing import draw_bar, draw_strip


@pytest.mark.parametrize(
    ("fraction", "bar"),
    [
        (0.5, "█████"),
        (1.0, "██████████"),
        (1.7, "██████████"),
        (0.0, ""),
        (-0.2, ""),
        (0.0125, "▏"),  # an eighth of one of ten cells
        (0.35, "███▌"),
        (math.nan, ""),
    ],
)
def test_bar_counts_eighths(fraction: float, bar: str) -> None:
    assert draw_bar(fraction, 10) == bar


@pytest.mark.parametrize(
    ("spans", "strip"),
    [
        ([(0.0, 0.5)], "████····"),
        ([(0.5, 1.0)], "····████"),
        ([(0.0, 0.25), (0.75, 1.0)], "██····██"),
        ([(0.30, 0.301)], "··█·····"),  # a short window is never lost
        ([(1.0, 1.0)], "·······█"),
        ([], "········"),
    ],
)
def test_strip_marks_every_touched_cell(spans: list[tuple[float, float]], strip: str) -> None:
    assert draw_strip(spans, 8) == strip
