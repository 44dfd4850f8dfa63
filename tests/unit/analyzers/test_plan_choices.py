"""The document's case of quantisation on an A10G: what fits, and where each gain comes from."""

from __future__ import annotations

import dataclasses
from itertools import product

import pytest

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.choices import compare_choices
from stallscope.analyzers.plan.options import PlanOptions, subject_of
from stallscope.analyzers.plan.planner import plan
from stallscope.analyzers.plan.predictions import closed_loop
from stallscope.analyzers.plan.result import Choice
from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.whatif.simulate import Load, Overhead, simulate
from stallscope.profiler.capture import Capture
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model

A10G = PlanOptions(
    load_model("llama-7b"), load_device("a10g"), input_tokens=512, output_tokens=1024
)
PAIRS = tuple(product(("fp16", "int8", "int4"), ("fp16", "int8")))
MIB = 1 << 20


def choices(concurrency: int) -> dict[tuple[str, str], Choice]:
    found = compare_choices(dataclasses.replace(A10G, concurrency=concurrency), PAIRS)
    return {(choice.dtype, choice.kv_dtype): choice for choice in found}


@pytest.fixture(scope="module")
def eight() -> dict[tuple[str, str], Choice]:
    return choices(8)


@pytest.fixture(scope="module")
def sixteen() -> dict[tuple[str, str], Choice]:
    return choices(16)


def test_what_fits_by_hand(eight: dict[tuple[str, str], Choice]) -> None:
    """0.9 · 24 GiB usable; 2048 rows of (4 · 4096 + 2 · 11008) · 2 bytes of activations.

    A request's 1535 tokens take 96 blocks of 16: 768 MiB in fp16, half in int8, and 128,000 bytes
    of logits. int8 keeps two bytes an output, int4 2.5 bytes for 128 inputs; tables stay in fp16.
    """
    blocks = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008)
    plain = 2 * (6_738_415_616 - blocks)
    outputs = 32 * (4 * 4096 + 2 * 11008 + 4096)
    weights = {
        "fp16": 2 * 6_738_415_616,
        "int8": blocks + 2 * outputs + plain,
        "int4": blocks / 2 + 2.5 * blocks / 128 + plain,
    }
    rows = 2048 * (4 * 4096 + 2 * 11008) * 2
    for (dtype, kv), choice in eight.items():
        assert choice.weights_bytes == int(weights[dtype])
        each = (768 if kv == "fp16" else 384) * MIB + 4 * 32_000
        room = int(0.9 * 24 * 2**30) - int(weights[dtype]) - rows
        assert choice.max_concurrency == room // each
    assert [c.max_concurrency for c in eight.values()] == [11, 23, 19, 39, 23, 47]


def test_at_eight_all_fit_and_a_larger_batch_gives_nothing(
    eight: dict[tuple[str, str], Choice],
) -> None:
    assert {choice.running for choice in eight.values()} == {8}
    for choice in list(eight.values())[1:]:
        assert choice.gain is not None
        assert (choice.gain.larger_batch, choice.gain.less_queueing) == (0.0, 0.0)
        assert choice.gain.fewer_bytes == choice.gain.total > 0


def test_at_sixteen_a_larger_batch_gives_its_part(
    sixteen: dict[tuple[str, str], Choice],
) -> None:
    # Room for 11 whole requests lets more run while they are short.
    assert [choice.running for choice in sixteen.values()] == [13, 16, 16, 16, 16, 16]
    first = sixteen["fp16", "fp16"]
    for choice in list(sixteen.values())[1:]:
        gain = choice.gain
        assert gain is not None
        assert gain.larger_batch > 0
        assert gain.fewer_bytes > 0
        assert gain.total == pytest.approx(
            gain.larger_batch + gain.fewer_bytes + gain.less_queueing
        )
        assert gain.total == pytest.approx(
            (choice.throughput_tokens_per_s or 0) - (first.throughput_tokens_per_s or 0)
        )
        assert (choice.wait_s or 0) < (first.wait_s or 0) / 10


def test_fewer_bytes_by_hand(eight: dict[tuple[str, str], Choice]) -> None:
    """At eight a decode step reads 13.21 GB of fp16 weights and 8 · 1024 · 0.5 MiB of cache.

    At 0.85 and 0.75 of 600 GB/s: 25.9 and 9.5 ms; in int8 caches 4.8 ms less. The starts of 5
    small and 5 other kernels in 32 layers and the host come on top.
    """
    first, other = eight["fp16", "fp16"], eight["fp16", "int8"]
    weights, cache = 13_214_154_752 / (0.85 * 600e9), 8 * 1024 * 524_288 / (0.75 * 600e9)
    starts = 32 * (5 * 3e-6 + 4 * 4e-6 + 14e-6) + 1.27e-3 + 8 * 3e-6
    assert first.tpot_s == pytest.approx(weights + cache + starts, rel=0.03)
    assert (first.tpot_s or 0) - (other.tpot_s or 0) == pytest.approx(cache / 2, rel=0.05)


def test_what_does_not_fit_has_no_gain() -> None:
    tight = dataclasses.replace(A10G, model=load_model("llama-13b"), concurrency=4)
    fp16, int4 = compare_choices(tight, (("fp16", "fp16"), ("int4", "fp16")))
    assert (fp16.running, fp16.tpot_s, fp16.throughput_tokens_per_s) == (0, None, None)
    assert int4.running == 4
    assert int4.gain is None
    unpriced = dataclasses.replace(tight, device=None)
    assert compare_choices(unpriced, PAIRS) == ()


def test_a_sweep_shows_where_memory_and_bandwidth_end() -> None:
    swept = plan(dataclasses.replace(A10G, dtype="fp16", sweep=True, concurrency=8)).sweep
    assert swept is not None
    assert [(row.concurrency, row.running) for row in swept.rows] == [
        *((1, 1), (2, 2), (4, 4), (8, 8)),
        (16, 13),
    ]
    assert swept.kv_full_from == 12
    # Every request reads its own half GB of cache: memory binds at any batch.
    assert swept.compute_from is None
    rates = [row.throughput_tokens_per_s for row in swept.rows]
    assert rates == sorted(rates)


def test_where_compute_takes_over_by_hand() -> None:
    """No cache to speak of: one token in, one context token; the head and blocks alone.

    Each of n rows does 2 FLOPs a weight of 2 bytes: compute binds where n exceeds the ridge, 200.6
    FLOP/B on an A100, and a little later for what activations add to the bytes.
    """
    options = PlanOptions(
        load_model("llama-7b"),
        load_device("a100-sxm4-40gb"),
        dtype="fp16",
        input_tokens=1,
        output_tokens=1,
        sweep=True,
    )
    swept = plan(options).sweep
    assert swept is not None
    assert swept.compute_from is not None
    assert 201 < swept.compute_from < 240
    assert {row.bound for row in swept.rows if row.concurrency < 201} == {"bandwidth"}
    assert {row.bound for row in swept.rows if row.concurrency >= 240} == {"compute"}


def test_what_is_expected_lies_beyond_the_floor() -> None:
    found = plan(dataclasses.replace(A10G, dtype="fp16", concurrency=8))
    for prediction in (found.ttft_s, found.tpot_s):
        assert prediction is not None
        assert (prediction.expected or 0) > prediction.value
        assert prediction.expected_error == 0.30
    rate = found.throughput_tokens_per_s
    assert rate is not None
    assert 0 < (rate.expected or 0) < rate.value
    quantised = plan(dataclasses.replace(A10G, dtype="int4", kv_dtype="int8")).tpot_s
    assert quantised is not None
    assert quantised.expected_error == 0.90  # no int8 peak is known of an A10G
    measured = dataclasses.replace(load_device("a10g"), kind="achievable")
    alone = plan(dataclasses.replace(A10G, dtype="fp16", device=measured)).tpot_s
    assert alone is not None
    assert (alone.expected, alone.expected_error) == (None, None)


def test_one_schedule_gives_headline_choices_and_sweep(
    sixteen: dict[tuple[str, str], Choice],
) -> None:
    """At 16, where five wait: the same tokens per second and time per token in all three."""
    whole = plan(
        dataclasses.replace(A10G, dtype="fp16", kv_dtype="fp16", concurrency=16, sweep=True)
    )
    assert whole.sweep is not None
    assert whole.throughput_tokens_per_s is not None
    assert whole.tpot_s is not None
    row = next(row for row in whole.sweep.rows if row.concurrency == 16)
    choice = sixteen["fp16", "fp16"]
    rate, tpot = whole.throughput_tokens_per_s.expected, whole.tpot_s.expected
    assert row.throughput_tokens_per_s == choice.throughput_tokens_per_s == rate
    assert row.tpot_s == choice.tpot_s == tpot
    assert row.running == choice.running


def test_a_sweep_goes_on_until_memory_ends() -> None:
    """tiny-26m in fp32 on 80 GB: thousands of requests of 12,288 bytes a token fit."""
    small = PlanOptions(
        load_model("tiny-26m"), load_device("h100-sxm"), dtype="fp32", output_tokens=8, sweep=True
    )
    swept = plan(small).sweep
    assert swept is not None
    assert swept.kv_full_from is not None
    assert swept.kv_full_from > 2048
    assert swept.rows[-1].concurrency >= swept.kv_full_from
    assert swept.rows[-2].concurrency < swept.kv_full_from


def test_the_worst_is_never_better_than_what_is_expected_and_its_error() -> None:
    """tiny-26m on an H100: launches and the host take far more than the roofline's 3.3 times."""
    whole = plan(PlanOptions(load_model("tiny-26m"), load_device("h100-sxm"), dtype="fp16"))
    for time in (whole.ttft_s, whole.tpot_s):
        assert time is not None
        assert time.worst == pytest.approx((time.expected or 0) / (1 - 0.30))
        assert time.worst == pytest.approx(time.value / (1 - time.error))
    rate = whole.throughput_tokens_per_s
    assert rate is not None
    assert rate.worst == pytest.approx((rate.expected or 0) * (1 - 0.30))
    assert rate.worst == pytest.approx(rate.value * (1 - rate.error))


def test_many_clients_are_simulated_as_groups_that_lose_nothing() -> None:
    """256 clients in pairs against each by itself: within two in a hundred."""
    options = dataclasses.replace(A10G, model=load_model("tiny-26m"), output_tokens=64)
    options = dataclasses.replace(options, dtype="fp16", concurrency=256)
    cost = build_cost_model(Capture(subject=subject_of(options)))
    assert isinstance(cost, CostModel)
    grouped = closed_loop(options, cost, Overhead(1e-3, 1e-6), slots=200, clients=256)
    assert grouped.times == 2
    blocks = 200 * -(-(512 + 64) // 16)
    config = SchedulerConfig(256, 2048, blocks)
    load = Load(((0.0, 512, 64),) * (4 * 256), 256)
    alone = simulate(load, config, cost, Overhead(1e-3, 1e-6))
    assert grouped.output_tokens == alone.output_tokens == 4 * 256 * 64
    assert grouped.output_tokens_per_s == pytest.approx(alone.output_tokens_per_s, rel=0.02)
    assert grouped.mean_running == pytest.approx(alone.mean_running, rel=0.02)
    assert grouped.queued_share == pytest.approx(alone.queued_share, rel=0.05)
