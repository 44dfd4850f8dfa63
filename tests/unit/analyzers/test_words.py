"""How sentences spell fractions."""

from __future__ import annotations

import pytest

from stallscope.analyzers.words import percent


@pytest.mark.parametrize(
    ("fraction", "text"),
    [(-0.0, "0 %"), (-0.004, "0 %"), (-0.006, "-1 %"), (0.004, "0 %"), (0.236, "24 %")],
)
def test_no_less_than_nothing(fraction: float, text: str) -> None:
    assert percent(fraction) == text
