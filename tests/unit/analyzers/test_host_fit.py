"""The host's part of a step, recovered from steps that were made with a known one."""

from __future__ import annotations

import pytest

from stallscope.analyzers.cost.achievable import DEFAULT
from stallscope.analyzers.cost.host_fit import MeasuredStep, calibrated, host_error


def steps(per_step: float, per_request: float, *batches: int) -> list[MeasuredStep]:
    device = {n: 10e-3 + 1e-4 * n for n in batches}
    return [MeasuredStep(n, device[n] + per_step + per_request * n, device[n]) for n in batches]


def test_known_parts_come_back() -> None:
    found = calibrated(DEFAULT, steps(2e-3, 5e-5, 1, 16, 64))
    assert (found.step_s, found.request_s) == pytest.approx((2e-3, 5e-5))
    assert found.product_memory == DEFAULT.product_memory


def test_no_part_is_negative() -> None:
    falling = calibrated(DEFAULT, [MeasuredStep(1, 12e-3, 10e-3), MeasuredStep(64, 11e-3, 10e-3)])
    assert falling.request_s == 0.0
    assert 1e-3 < falling.step_s < 2e-3
    below = calibrated(DEFAULT, [MeasuredStep(1, 9e-3, 10e-3), MeasuredStep(64, 9e-3, 10e-3)])
    assert (below.step_s, below.request_s) == (0.0, 0.0)


def test_one_batch_size_tells_nothing_apart() -> None:
    with pytest.raises(ValueError, match="two batch sizes"):
        calibrated(DEFAULT, steps(1e-3, 1e-5, 8, 8))


def test_the_miss_is_of_batch_sizes_left_out() -> None:
    """10 ms of the device each; the host takes 2, 4 and 5 ms at 1, 2 and 3 requests.

    By the other two, 1 has 2 + 1 = 3 ms, 2 has 0.5 + 2 · 1.5 = 3.5 ms, and 3 has 0 + 3 · 2 = 6 ms.
    """
    seen = [MeasuredStep(n, 10e-3 + s, 10e-3) for n, s in ((1, 2e-3), (2, 4e-3), (3, 5e-3))]
    assert host_error(seen) == pytest.approx((1 / 12 + 0.5 / 14 + 1 / 15) / 3)


def test_of_two_sizes_nothing_is_left_out() -> None:
    assert host_error(steps(2e-3, 5e-5, 1, 64)) == pytest.approx(0.0, abs=1e-9)
    assert host_error(steps(2e-3, 5e-5, 1, 64, 64)) == pytest.approx(0.0, abs=1e-9)
