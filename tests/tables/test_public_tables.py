"""Predictions against public measurements, none of which they were calibrated on."""

from __future__ import annotations

from pathlib import Path

import pytest
from operator_tables import FILES, operator_errors
from public_tables import errors_of, is_plain
from table_predictions import error, error_bar, mape, seconds_of
from table_rows import FIGURE_3, FIGURE_16, MLP_OPERATORS, vllm_runs


@pytest.mark.parametrize("device", ["a100-sxm4-40gb", "h100-sxm"])
def test_time_per_token_of_llama_3_8b(device: str, tables: Path) -> None:
    runs = [r for r in vllm_runs(tables, FIGURE_3) if r.device == device and is_plain(r)]
    assert len(runs) == 20
    plain, fitted = errors_of(runs)
    assert mape([*plain.values()]) <= 0.20
    assert mape([*fitted.values()]) <= 0.08
    assert len(fitted) == 17


def test_error_bars_hold_for_most_runs(tables: Path) -> None:
    runs = vllm_runs(tables, FIGURE_3) + vllm_runs(tables, FIGURE_16)
    # A long run under a full cache is simulated step by step: every fourth tells as much.
    some = [run for run in runs if run.tokens <= 512 or run.batch == 16]
    inside = [abs(error(seconds_of(run), run.seconds)) <= error_bar(run) for run in some]
    assert sum(inside) / len(inside) >= 0.85


@pytest.mark.parametrize("model", FILES)
def test_each_mlp_operator_between_a_tenth_of_its_rows(model: str, tables: Path) -> None:
    found = operator_errors(tables, model)
    misses = {key: mape(fitted) for key, (_, fitted) in found.items() if key[0] in MLP_OPERATORS}
    assert len(misses) == 8
    assert max(misses.values()) <= 0.10
