"""What stands in results and is no figure is named, and what then stands for it is said."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.benchmark.no_figures import no_figures
from stallscope.profiler.reading import read_input

ROW: dict[str, Any] = {
    "backend": "vllm",
    "request_rate": "inf",
    "max_concurrency": 8,
    "completed": 40,
    "duration": 16.0,
    "total_input_tokens": 5120,
    "total_output_tokens": 20480,
    "output_throughput": 1280.0,
    "mean_ttft_ms": 75.0,
    "median_ttft_ms": 74.0,
    "mean_tpot_ms": 6.4,
    "median_tpot_ms": 6.3,
    "mean_e2el_ms": 3300.0,
}
MEDIANS = "The results tell no mean of the time per output token: its median stands for it."


def notes(folder: Path, row: dict[str, Any]) -> tuple[str, ...]:
    path = folder / "run.json"
    path.write_text(json.dumps(row))
    return diagnose(read_input(path)).notes


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-5.0, "-5.0"),
        (1e300, "1e+300"),
        ("fast", "fast"),
        ("as fast as it could be", "as fast as it could …"),
    ],
)
def test_a_value_that_is_none_is_named_and_its_median_stands(
    value: object, shown: str, tmp_path: Path
) -> None:
    said = notes(tmp_path, {**ROW, "mean_tpot_ms": value})
    assert f"run.json: mean_tpot_ms ({shown}) is no figure and was left out." in said
    assert MEDIANS in said


def test_results_that_hold_figures_only_say_nothing(tmp_path: Path) -> None:
    for row in (ROW, {**ROW, "p99_ttft_ms": None, "request_goodput:": None, "mean_itl_ms": "6.4"}):
        said = notes(tmp_path, row)
        assert not any("no figure" in s or "median" in s for s in said)


def test_a_median_that_alone_was_told_is_said_too(tmp_path: Path) -> None:
    row = {k: v for k, v in ROW.items() if not k.startswith("mean_t")}
    assert (
        "The results tell no mean of the time to first token and time per output token: medians "
        "stand for them." in notes(tmp_path, row)
    )


def test_nested_figures_and_only_some_are_named() -> None:
    nested = {"metrics": {"ttft": {"mean": math.nan, "unit": "ms"}}, "schedule_delay": {"min": -1}}
    assert no_figures(nested) == "metrics.ttft.mean (nan) is no figure and was left out."
    many = {f"p{i}": -1 for i in range(10, 19)}
    assert no_figures(many) == (
        "p10 (-1), p11 (-1), p12 (-1), p13 (-1), p14 (-1), p15 (-1) and 3 more are no figures and "
        "were left out."
    )
    assert no_figures({"seed": -1, "p2p": "off", "maximum": -1, "mean_reward": [1]}) is None
