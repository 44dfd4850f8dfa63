"""A model's linears by measured products of other shapes, against hand arithmetic."""

from __future__ import annotations

import pytest

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.linears import Linear
from stallscope.analyzers.cost.operators import decode_shape
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.shape_classes import class_times, weight_bytes
from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.planner import plan
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import DeviceSpec, ModelSpec, ProductTime, Subject

# One layer of hidden 64 with one head: q, k, v, o of 4,096 elements, MLP of three, head of 4,096.
TOY = ModelSpec("toy", 64, 64, 1, 1, 1, 64, 64, 4096)
# A square of 4,096 elements takes 1 ms for one row, one of 65,536 takes 16 ms.
ONE_ROW = (
    ProductTime("fp32", 64, 64, 1, 1e-3),
    ProductTime("fp32", 256, 256, 1, 16e-3),
)
MINE = DeviceSpec("mine", {"fp32": 1e12, "bf16": 1e12}, 1 << 30, 1e8, "achievable")


def test_time_goes_with_size_between_and_past_the_shapes() -> None:
    """Here time is proportional to elements throughout: 3 · 4,096 in qkv, 2 · 4,096 in gate/up."""
    times = class_times(TOY, "fp32", ONE_ROW)
    assert {group: points[0][0] for group, points in times.items()} == dict.fromkeys(times, 1)
    seconds = {group: points[0][1] for group, points in times.items()}
    assert seconds == {
        "qkv": pytest.approx(3e-3),
        "o": pytest.approx(1e-3),
        "gate_up": pytest.approx(2e-3),
        "down": pytest.approx(1e-3),
        "lm_head": pytest.approx(1e-3),
    }
    wide = ModelSpec("wide", 512, 64, 1, 1, 1, 64, 1024, 4096)
    # 512 · 1024 elements are eight times the largest shape's.
    assert class_times(wide, "fp32", ONE_ROW)["lm_head"] == ((1, pytest.approx(8 * 16e-3)),)


def test_between_two_sizes_both_logarithms_are_halved() -> None:
    """1 ms at 4,096 elements and 4 ms at 65,536: at 16,384, half way, √(1 · 4) = 2 ms."""
    flat = (ONE_ROW[0], ProductTime("fp32", 256, 256, 1, 4e-3))
    middle = ModelSpec("middle", 128, 64, 1, 1, 1, 64, 128, 4096)
    assert class_times(middle, "fp32", flat)["lm_head"] == ((1, pytest.approx(2e-3)),)


def test_shapes_of_one_size_count_with_their_mean() -> None:
    both = (*ONE_ROW, ProductTime("fp32", 32, 128, 1, 3e-3))
    assert class_times(TOY, "fp32", both)["o"] == ((1, pytest.approx(2e-3)),)


@pytest.mark.parametrize(
    ("small", "large", "expected"),
    [
        # The toy's eight matrices take 8 · 4,096 · 4 = 131,072 bytes: half way on the logarithm
        # between 65,536 and 262,144, or past either end.
        (65_536, 262_144, 1.5e-3),
        (131_072, 262_144, 1e-3),
        (200_000, 262_144, 1e-3),
        (32_768, 131_072, 2e-3),
        (32_768, 65_536, 2e-3),
        (0, 262_144, 2e-3),  # a file that does not say what its first took
    ],
)
def test_time_goes_with_what_all_matrices_take(small: int, large: int, expected: float) -> None:
    slow = tuple(ProductTime("fp32", 64, 64, rows, 2e-3, large) for rows in (1, 2))
    products = (
        ProductTime("fp32", 64, 64, 1, 1e-3, small),
        *slow,
        ProductTime("fp32", 64, 64, 4, 3e-3, small),  # of four rows only the small amount
    )
    assert class_times(TOY, "fp32", products)["o"] == (
        (1, pytest.approx(expected)),
        (2, pytest.approx(2e-3)),
        (4, pytest.approx(3e-3)),
    )


def test_of_experts_the_active_ones_count() -> None:
    """Two of eight copies of 1,000 elements in three layers, and one of 500: 6,500 of 2 bytes."""
    experts = Linear("expert_up_proj", "expert_gate_up", 10, 100, 3, copies=8, active=2)
    assert weight_bytes((experts, Linear("o_proj", "o", 10, 50, 1)), "bf16") == 13_000


def test_a_dtype_that_was_not_measured_has_no_times() -> None:
    assert class_times(TOY, "bf16", ONE_ROW) == {}
    for dtype, is_measured in (("fp32", True), ("bf16", False)):
        device = DeviceSpec("m", MINE.peak_flops, 1 << 30, 1e8, "achievable", products=ONE_ROW)
        cost = build_cost_model(Capture(subject=Subject(TOY, device, 1, dtype, dtype)))
        assert isinstance(cost, CostModel)
        assert bool(cost.machine.linear_times) == is_measured


def test_a_plan_on_a_probed_device_takes_its_products() -> None:
    """Eight linears of 1 ms, as above, and one key and value of 512 bytes a token at 100 MB/s."""
    device = DeviceSpec("m", {"fp32": 1e12}, 1 << 30, 1e8, "achievable", products=ONE_ROW)
    found = plan(PlanOptions(TOY, device, dtype="fp32", input_tokens=1, output_tokens=2))
    cost = build_cost_model(Capture(subject=Subject(TOY, device, 1, "fp32", "fp32")))
    assert isinstance(cost, CostModel)
    assert found.tpot_s is not None
    attention = (2 * 512 + 512) / 1e8
    assert found.tpot_s.value == pytest.approx(8e-3 + attention)
    assert cost.step_time(decode_shape(1, 2)).floor == pytest.approx(8e-3 + attention)
    decode = found.phases[1]
    parts = {part.part: part.time_s for part in decode.budget}
    # 8 · 64 · 64 · 4 bytes and 512 of activations each are 1.35 ms of reading; twice that is
    # explained by it, the rest by nothing: more than by anything else.
    read = 8 * (64 * 64 * 4 + 512) / 1e8
    assert parts["weights"] == pytest.approx(2 * read)
    assert parts["unexplained"] == pytest.approx(8e-3 - 2 * read)
    assert sum(parts.values()) == pytest.approx(decode.time_s)
    assert decode.bound == "undetermined"
