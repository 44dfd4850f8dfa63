"""How sentences spell fractions."""

from __future__ import annotations

import pytest

from stallscope.analyzers.words import at_least, percent


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(-0.0, "0 %"), (-0.004, "0 %"), (-0.006, "-1 %"), (0.004, "0 %"), (0.236, "24 %")],
)
def test_no_less_than_nothing(fraction: float, text: str) -> None:
    assert percent(fraction) == text


@pytest.mark.parametrize(
    ("fraction", "text"), [(0.598, "59 %"), (0.6, "60 %"), (0.29, "29 %"), (0.009, "0 %")]
)
def test_a_lower_bound_says_no_more_than_it_holds(fraction: float, text: str) -> None:
    assert at_least(fraction) == text
