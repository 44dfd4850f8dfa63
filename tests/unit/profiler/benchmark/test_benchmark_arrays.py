"""Arrays of single requests: exact distributions, and the requests themselves in time."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmark_rows import VLLM, capture_of, trials_in

from stallscope.profiler.benchmark.arrays import summarised
from stallscope.profiler.capture import Capture
from stallscope.profiler.trial import Spread

# Three requests, sent at 5.0, 4.0 and 6.0 s of the client's clock; the last one failed.
DETAILED = {
    **VLLM,
    **{"completed": 2, "failed": 1, "total_input_tokens": 30, "total_output_tokens": 5},
    "input_lens": [10, 20, 30],
    "output_lens": [3, 2, 0],
    "ttfts": [0.5, 0.25, 0.0],
    "itls": [[0.1, 0.2], [0.15], []],
    "errors": ["", "", "connection refused"],
    "start_times": [5.0, 4.0, 6.0],
}


def test_requests_are_placed_by_the_clients_clock(tmp_path: Path) -> None:
    requests = capture_of(tmp_path, DETAILED).requests
    assert [r[:5] for r in requests] == [
        (0, 0, None, 250_000_000, 400_000_000),  # 0.25 + 0.15 s
        (1, 1_000_000_000, None, 1_500_000_000, 1_800_000_000),  # 0.5 + 0.3 s
        (2, 2_000_000_000, None, None, None),
    ]
    assert [(r.input_tokens, r.output_tokens, r.status) for r in requests] == [
        (20, 2, "finished"),
        (10, 3, "finished"),
        (30, 0, "failed"),
    ]


def test_distributions_are_those_of_the_arrays(tmp_path: Path) -> None:
    (trial,) = trials_in(capture_of(tmp_path, DETAILED))
    found = trial.latency
    assert found["ttft_s"].mean == pytest.approx(0.375)
    assert found["e2e_s"].mean == pytest.approx(0.6)  # 0.8 and 0.4
    assert found["tpot_s"].mean == pytest.approx(0.15)  # 0.3 / 2 and 0.15 / 1
    assert (found["itl_s"].n, found["itl_s"].least, found["itl_s"].most) == (3, 0.1, 0.2)
    assert (found["ttft_s"].n, found["ttft_s"].least, found["ttft_s"].most) == (2, 0.25, 0.5)


def test_stated_latencies_count_what_gaps_do_not(tmp_path: Path) -> None:
    requests = capture_of(tmp_path, {**DETAILED, "latencies": [0.9, 0.4, 0.0]}).requests
    assert requests[1].end_ns == 1_900_000_000


@pytest.mark.parametrize(
    "change",
    [
        {"start_times": None},
        {"start_times": [5.0, 4.0]},
        {"start_times": [5.0, 4.0, 1e12]},
        {"ttfts": [0.5, "0.25", 0.0]},
        {"itls": [[0.1], [0.2]]},
        {"itls": [[0.1], 3, []]},
        {"ttfts": [0.5, float("nan"), 0.0]},
    ],
)
def test_arrays_that_do_not_fit_place_nothing(tmp_path: Path, change: dict[str, object]) -> None:
    capture: Capture = capture_of(tmp_path, {**DETAILED, **change})
    assert capture.requests == ()
    assert trials_in(capture)[0].completed == 2


def test_percentiles_interpolate_between_order_statistics() -> None:
    # 0.9 · 4 = 3.6: 40 + 0.6 · (50 − 40); 0.99 · 4 = 3.96
    assert summarised([50.0, 10.0, 40.0, 20.0, 30.0]) == Spread(
        30.0, 30.0, 46.0, 49.6, 5, 10.0, 50.0
    )
    assert summarised([2.0]) == Spread(2.0, 2.0, 2.0, 2.0, 1, 2.0, 2.0)
