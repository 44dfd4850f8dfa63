"""Remedies: every gain is a model's; none where no model could be asked."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import batch_one
from played_run import COST, play, tokens_per_s
from step_rows import TINY, decode, prefill, step

from stallscope.analyzers.classes import CLASSES
from stallscope.analyzers.cost.operators import decode_shape
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.measures import MEASURES
from stallscope.analyzers.result import Remedy
from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.step.budget import StepCost, cost_steps, measured_steps
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.fewer_bytes import fewer_weight_bytes
from stallscope.analyzers.whatif.remedies import remedies_for, wont_help
from stallscope.analyzers.whatif.replay import Replay, build_replay, lift, try_config
from stallscope.analyzers.whatif.simulate import Overhead
from stallscope.profiler.capture import Step
from stallscope.profiler.model_parts import Quantization
from stallscope.profiler.models import load_model

T = Thresholds()
LIMITED = SchedulerConfig(max_num_seqs=2, max_num_batched_tokens=512, num_blocks=20, block_size=4)
RUN = play([(12, 20)] * 16, LIMITED, clients=8, truth=Overhead(per_step=0.002))
COSTS = cost_steps(measured_steps(RUN), COST)
SPEED = tokens_per_s(RUN)


@pytest.fixture(scope="module")
def replay() -> Replay:
    found = build_replay(RUN, COSTS, COST, SPEED)
    assert found is not None
    return found


def found(
    bottleneck: str,
    replay: Replay | None = None,
    cost: CostModel | None = None,
    tokens: float | None = SPEED,
    limit: str | None = None,
) -> tuple[Remedy, ...]:
    return remedies_for(
        bottleneck, limit=limit, replay=replay, costs=COSTS, cost=cost, tokens_per_s=tokens, t=T
    )


@pytest.mark.parametrize("bottleneck", CLASSES)
def test_no_gain_without_a_model(bottleneck: str, replay: Replay) -> None:
    assert [r.gain for r in found(bottleneck) if r.gain] == []
    # A queue's gain needs the replay, a step's the cost model and a measured rate.
    if bottleneck in ("capacity", "scheduling"):
        assert [r.gain for r in found(bottleneck, cost=COST) if r.gain] == []
    else:
        assert [r.gain for r in found(bottleneck, replay=replay) if r.gain] == []
        assert [r.gain for r in found(bottleneck, cost=COST, tokens=None) if r.gain] == []


def test_gains_of_a_full_cache_are_the_simulators(replay: Replay) -> None:
    tight = dataclasses.replace(replay, config=dataclasses.replace(LIMITED, num_blocks=9))
    room, half, fewer = found("capacity", tight, COST)
    lifted = try_config(tight, lift(tight, "kv"), T)
    doubled = try_config(tight, dataclasses.replace(LIMITED, num_blocks=18), T)
    assert lifted is not None
    assert doubled is not None
    assert (room.gain, half.gain, fewer.gain) == (lifted.gain, doubled.gain, None)


def test_gain_of_the_cap_is_the_simulators_and_its_flag_has_the_value(replay: Replay) -> None:
    (raised,) = found("scheduling", replay, COST)
    whatif = try_config(replay, dataclasses.replace(LIMITED, max_num_seqs=8), T)
    assert whatif is not None
    assert raised.gain == whatif.gain
    assert raised.flag["stallscope"] == "--max-num-seqs 8"
    assert raised.flag["sglang"] == "--max-running-requests 8"
    assert "to 8" in raised.action
    (blind,) = found("scheduling")
    assert blind.flag["vllm"] == "--max-num-seqs"


def test_no_remedy_sets_what_holds_already(replay: Replay) -> None:
    """Eight clients and a cap of 8: there is no more to raise it to."""
    full = dataclasses.replace(replay, config=dataclasses.replace(LIMITED, max_num_seqs=8))
    (raised,) = found("scheduling", full, COST)
    assert (raised.action, raised.gain) == ("raise the sequence cap", None)
    assert raised.flag["vllm"] == "--max-num-seqs"
    ours = [r.flag.get("stallscope") for r in found("compute", cost=COST) if "dtype" in r.action]
    assert ours == [None]  # COST is in 16 bits, which is what --dtype bf16 would set
    eight = dataclasses.replace(COST, dtype="fp8")
    assert not [r for r in found("compute", cost=eight) if "dtype" in r.action]
    wide = dataclasses.replace(COST, dtype="fp32")
    (higher,) = [r for r in found("compute", cost=wide) if "dtype" in r.action]
    assert higher.flag["stallscope"] == "--dtype bf16"


def test_smaller_weights_offer_what_the_run_does_not_have_yet() -> None:
    def actions(dtype: str) -> list[str]:
        cost = CostModel(TINY, dtype, "fp16", COST.machine)
        return [r.action for r in found("bandwidth", cost=cost) if "weights in" in r.action]

    assert [a.partition("weights ")[2] for a in actions("fp32")] == [
        "in 16 bits instead of 32",
        "in 4 bits",
    ]
    assert len(actions("fp16")) == 1
    assert actions("int4") == []


def test_a_flag_goes_with_the_gain_of_its_own_dtype() -> None:
    cost = CostModel(TINY, "fp32", "fp32", COST.machine)
    costs = cost_steps(measured_steps(RUN), cost)
    half, quarter, _ = remedies_for(
        "bandwidth", replay=None, costs=costs, cost=cost, tokens_per_s=SPEED, t=T
    )
    assert half.flag["stallscope"] == "--dtype bf16"
    assert half.gain == fewer_weight_bytes(costs, cost, "bf16", SPEED)
    assert "stallscope" not in quarter.flag  # its runner has no 4-bit weights
    assert quarter.gain == fewer_weight_bytes(costs, cost, "int4", SPEED)


def test_every_remedy_can_be_done_and_checked(replay: Replay) -> None:
    for bottleneck in ("capacity", "scheduling", "bandwidth", "compute", "host"):
        remedies = found(bottleneck, replay, COST)
        assert remedies
        for remedy in remedies:
            assert remedy.action
            assert remedy.check
            assert all(remedy.flag.values())
            assert remedy.flag
    assert found("undetermined") == ()


@pytest.mark.parametrize(
    ("bottleneck", "limit", "words"),
    [
        ("scheduling", "stalled", "stands still"),
        ("scheduling", "imbalance", "fewest in flight"),
        ("scheduling", "deferred", "find what the requests lack"),
        ("host", "front", "prepare requests"),
    ],
)
def test_a_queue_at_no_cap_calls_for_something_else_than_the_cap(
    bottleneck: str, limit: str, words: str, replay: Replay
) -> None:
    (remedy,) = found(bottleneck, replay, COST, limit=limit)
    assert words in remedy.action
    assert remedy.flag
    assert remedy.check
    assert remedy.gain is None
    assert "raising the sequence cap" in [w.action for w in wont_help(bottleneck, limit)]
    assert words not in " ".join(r.action for r in found(bottleneck, replay, COST, limit="seqs"))


def test_a_queue_at_the_token_budget_may_have_a_larger_one(replay: Replay) -> None:
    larger, *rest = found("compute", replay, COST, limit="tokens")
    whatif = try_config(replay, dataclasses.replace(LIMITED, max_num_batched_tokens=2048), T)
    assert whatif is not None
    assert larger.gain == whatif.gain
    assert larger.flag["stallscope"] == "--max-num-batched-tokens 2048"
    assert [r.action for r in rest] == [r.action for r in found("compute", replay, COST)]
    # Prompts that come in steadily under every cap leave no budget to raise.
    assert found("compute", replay, COST, limit="prefill") == tuple(rest)
    assert "for a slot" in wont_help("compute", "tokens")[0].because
    assert "arithmetic" in wont_help("compute", "prefill")[1].because
    (blind, *_) = found("compute", limit="tokens")
    assert (blind.gain, blind.flag["vllm"]) == (None, "--max-num-batched-tokens")


def test_popular_wrong_fixes() -> None:
    assert [len(wont_help(c)) for c in ("capacity", "scheduling", "bandwidth", "none")] == [2] * 4
    assert wont_help("undetermined") == ()


# Memory that the KV cache takes, arithmetic that decode does

A100 = Machine(312e12, 2.039e12, "datasheet")
LLAMA = CostModel(load_model("llama-7b"), "fp16", "fp16", A100)


def step_remedies(bottleneck: str, cost: CostModel, *rows: Step) -> list[Remedy]:
    costs = cost_steps(rows, cost)
    return list(
        remedies_for(bottleneck, replay=None, costs=costs, cost=cost, tokens_per_s=711.0, t=T)
    )


def batch(size: int, context: int, ms: float) -> Step:
    keys = size * context
    work = {"context_tokens": keys, "attention_pairs": keys, "logit_rows": size}
    return step(0, ms, decode_requests=size, **work)


def test_where_kv_is_read_most_its_dtype_comes_first_and_no_larger_batch() -> None:
    """32 × 4000 keys are 67.1 GB, 32.9 of 45 ms; the weights' 13.2 GB 6.5 ms."""
    kv, weights = step_remedies("bandwidth", LLAMA, batch(32, 4000, 45))
    assert kv.flag["vllm"] == "--kv-cache-dtype fp8"
    assert kv.gain is not None
    # Half of the KV bytes away: 45 ms become 28.5.
    assert kv.gain.after == pytest.approx(711.0 * 45 / (45 - 32.9 / 2), rel=0.001)
    assert "weights" in weights.action
    # Weights below a tenth of the time are not worth a remedy.
    only = step_remedies("bandwidth", LLAMA, batch(64, 4000, 90))
    assert [r.flag for r in only] == [kv.flag]
    # And where weights are most, they come first; a KV cache of a tenth or more comes second.
    actions = [r.action for r in step_remedies("bandwidth", LLAMA, batch(8, 1000, 12))]
    assert [a.split(":")[1].split()[0] for a in actions[:2]] == ["weights", "a"]
    assert "batch" in actions[2]


def test_a_cache_in_fp32_goes_to_16_bits_and_one_in_8_bits_stays() -> None:
    wide = CostModel(LLAMA.spec, "fp16", "fp32", A100)
    first = step_remedies("bandwidth", wide, batch(32, 4000, 90))[0]
    assert first.flag["stallscope"] == "--kv-dtype bf16"
    narrow = CostModel(LLAMA.spec, "fp16", "fp8", A100)
    actions = [r.action for r in step_remedies("bandwidth", narrow, batch(32, 4000, 30))]
    assert not any("KV" in a for a in actions)


def test_arithmetic_of_a_large_batch_is_not_helped_by_prefix_caching() -> None:
    """1024 rows of 2 · 6.6 GFLOP are 43 of 70 ms; not one of them is a prompt's."""
    dtype, devices = step_remedies("compute", LLAMA, batch(1024, 20, 70))
    assert (dtype.check[:10], dtype.evidence[0]) == ("decode MFU", "mfu_decode")
    assert devices.flag["vllm"] == "--tensor-parallel-size"
    prompts = step_remedies("compute", LLAMA, prefill(0, 60, 1024))
    assert "prefixes" in prompts[0].action
    assert prompts[1].check.startswith("prefill MFU")


def test_a_remedy_names_what_it_rests_on(replay: Replay) -> None:
    for bottleneck in ("capacity", "scheduling", "bandwidth", "compute", "host"):
        for remedy in found(bottleneck, replay, COST):
            assert remedy.evidence
            assert set(remedy.evidence) <= set(MEASURES)


def test_a_report_names_only_evidence_that_the_run_has() -> None:
    diagnosis = diagnose(batch_one())
    names = {m.name for m in diagnosis.measures}
    assert diagnosis.remedies
    for remedy in diagnosis.remedies:
        assert set(remedy.evidence) <= names
    assert diagnosis.remedies[0].evidence == ("weight_bytes_per_step", "mbu_decode")


# What smaller weights buy

READING = CostModel(TINY, "fp16", "fp16", Machine(1e15, 1e8, "datasheet"))


def priced(*rows: Step, cost: CostModel = READING) -> tuple[StepCost, ...]:
    return cost_steps(rows, cost)


def test_half_the_weight_bytes_by_hand() -> None:
    # fp32 to bf16, 145,408 elements read a step at 100 MB/s: 5.81632 ms less 2.90816, and of the
    # activations (3 x 1,120 elements in and out of linears, 3 x 128 of attention, 320 of the head)
    # another 2 bytes each. A step of 20 ms keeps the rest.
    cost = CostModel(TINY, "fp32", "fp32", READING.machine)
    saved = 2 * (145_408 + 3 * 1_120 + 3 * 128 + 320) / 1e8
    gain = fewer_weight_bytes(priced(decode(0, 20, 5), cost=cost), cost, "bf16", 50.0)
    assert gain is not None
    assert (gain.metric, gain.before) == ("output_tokens_per_s", 50.0)
    assert gain.after == pytest.approx(50.0 * 0.020 / (0.020 - saved))
    # 20 ms less twice that and the KV of five keys is not explained: that is the error.
    floor = 2 * saved + 4 * 3 * 2 * 32 * 5 / 1e8
    assert gain.error == pytest.approx(1 - floor / 0.020)


def test_the_error_is_never_under_a_tenth() -> None:
    floor_ms = READING.step_time(decode_shape(1, 1)).floor * 1e3
    gain = fewer_weight_bytes(priced(decode(0, floor_ms, 1)), READING, "int4", 50.0)
    assert gain is not None
    assert gain.error == 0.1
    assert gain.after > 2 * gain.before


def test_arithmetic_that_hides_behind_reading_bounds_the_gain() -> None:
    # An element of llama-7b's q projection at 100 rows: 2.10 bytes with activations at 1.555 TB/s
    # are 1.35 ps, 0.62 bytes 0.40, 200 FLOPs at 312 TFLOP/s 0.64: 2.1 times faster, not 3.4.
    a100 = Machine(312e12, 1.555e12, "datasheet")
    cost = CostModel(load_model("llama-7b"), "fp16", "fp16", a100)
    floor_ms = cost.step_time(decode_shape(100, 1)).floor * 1e3
    work = {"decode_requests": 100, "logit_rows": 100}
    gain = fewer_weight_bytes(
        priced(decode(0, floor_ms, 100, **work), cost=cost), cost, "int4", 100.0
    )
    assert gain is not None
    assert 1.8 < gain.after / gain.before < 2.1
    # Prompts of 512 are arithmetic already.
    assert fewer_weight_bytes(priced(prefill(0, 50, 512), cost=cost), cost, "int4", 100.0) is None


def test_no_gain_from_int8_that_products_compute_in() -> None:
    """The smaller format computes in 16 bits, at another peak than the machine's here."""
    stored = Quantization("compressed-tensors", activations=True)
    spec = dataclasses.replace(TINY, dtype="int8", quantization=stored)
    cost = CostModel(spec, "int8", "fp16", READING.machine)
    rows = priced(decode(0, 20, 5), cost=cost)
    assert fewer_weight_bytes(rows, cost, "int4", 50.0) is None
    alone = dataclasses.replace(stored, activations=False)
    weight_only = dataclasses.replace(cost, spec=dataclasses.replace(spec, quantization=alone))
    assert fewer_weight_bytes(rows, weight_only, "int4", 50.0) is not None


def test_no_gain_where_the_model_does_not_apply() -> None:
    row = decode(0, 20, 5)
    probed = CostModel(
        TINY, "fp16", "fp16", dataclasses.replace(READING.machine, linear_times={"o": ((1, 1e-3),)})
    )
    assert fewer_weight_bytes(priced(row, cost=probed), probed, "int4", 9.0) is None
    assert fewer_weight_bytes(priced(row), READING, "bf16", 9.0) is None  # the same bytes
    assert fewer_weight_bytes(priced(row), READING, "fp32", 9.0) is None  # more
    assert fewer_weight_bytes(priced(row), READING, "int4", None) is None
    assert fewer_weight_bytes(priced(row), READING, "int4", 0.0) is None  # of nothing no gain
    assert fewer_weight_bytes(priced(row, step(20, 30)), READING, "int4", 9.0) is None
    assert fewer_weight_bytes([], READING, "int4", 9.0) is None
    # A step faster than what would be saved: the model is wrong.
    assert fewer_weight_bytes(priced(decode(0, 1, 5)), READING, "int4", 9.0) is None
    fp8 = CostModel(TINY, "fp8", "fp16", READING.machine)
    assert fewer_weight_bytes(priced(row, cost=fp8), fp8, "int4", 9.0) is None


def test_a_static_batch_is_told_to_batch_continuously() -> None:
    subject = dataclasses.replace(RUN.subject, static_batching=True, block_size=None)
    steps = tuple(s._replace(kv_total_bytes=None) for s in RUN.steps)
    run = dataclasses.replace(RUN, subject=subject, steps=steps)
    static = build_replay(run, cost_steps(steps, COST), COST, SPEED)
    assert static is not None
    assert static.config.static
    # No pool: room for all 16 requests of 12 + 20 tokens, in blocks of 16.
    assert static.config.num_blocks >= 16 * 2
    continuous = lift(static, "batch")
    assert (continuous.static, continuous.chunked_prefill) == (False, True)
    first, _ = remedies_for(
        "scheduling",
        limit="batch",
        replay=static,
        costs=COSTS,
        cost=COST,
        tokens_per_s=SPEED,
        t=T,
    )
    lifted = try_config(static, continuous, T)
    assert lifted is not None
    assert first.gain == lifted.gain
    assert first.flag["stallscope"] == "--engine builtin"


@pytest.mark.parametrize(
    ("kv_dtype", "is_named"), [(None, True), ("bf16", True), ("fp8", False), ("int4", False)]
)
def test_a_cache_of_eight_bits_is_not_halved(kv_dtype: str | None, is_named: bool) -> None:
    listed = remedies_for(
        "capacity", replay=None, costs=COSTS, cost=None, tokens_per_s=SPEED, t=T, kv_dtype=kv_dtype
    )
    assert any("in half the bytes" in remedy.action for remedy in listed) == is_named


@pytest.mark.parametrize("dtype", ["int4", "mxfp4"])
def test_weights_of_four_bits_are_not_made_smaller(dtype: str) -> None:
    cost = dataclasses.replace(COST, dtype=dtype)
    assert not any("in 4 bits" in remedy.action for remedy in found("bandwidth", cost=cost))
    assert any("in 4 bits" in remedy.action for remedy in found("bandwidth", cost=COST))
