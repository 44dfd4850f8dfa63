"""A remedy's gain: a number where the model can tell it, and no bare number where it cannot."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stallscope.analyzers.result import Diagnosis, Gain, Remedy
from stallscope.reports.advice_sections import remedies
from stallscope.reports.blocks import Items


def gain_line(diagnosis: Diagnosis, gain: Gain) -> str:
    told = remedies(replace(diagnosis, remedies=(Remedy("do it", {}, gain, ""),)))
    (items,) = told.blocks
    assert isinstance(items, Items)
    return items.items[0].details[0]


@pytest.mark.parametrize(
    ("after", "error", "is_told"),
    [
        (75.0, 0.26, False),  # +25 %, and the error is larger
        (75.0, 0.25, False),  # as large
        (75.0, 0.24, True),
        (45.0, 0.24, True),  # -25 %: 45 of 60
        (60.0, 0.0, True),  # no change, and no error to hide it in
    ],
)
def test_a_gain_within_the_error_is_not_told(
    busy: Diagnosis, after: float, error: float, is_told: bool
) -> None:
    before = 60.0
    line = gain_line(busy, Gain("output_tokens_per_s", "tokens/s", before, after, error))
    assert line.startswith("Gain: output_tokens_per_s 60 tokens/s → ") is is_told
    assert ("by how much cannot be told" in line) is not is_told
    assert f"±{100 * error:.0f} %" in line
