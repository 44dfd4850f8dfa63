"""What a linear takes is measured; why it takes that long is what its bytes and FLOPs explain."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest
from capture_builders import MS, ON_CPU, decodes, event
from hypothesis import given
from hypothesis import strategies as st
from played_run import play, replay_of
from step_rows import TINY, decode

from stallscope.analyzers.cost.operator_table import operator_rows
from stallscope.analyzers.cost.operators import Operator, decode_shape
from stallscope.analyzers.cost.roofline import EXPLAINED_WITHIN, CostModel, Machine, operator_time
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.plan.steps import bound_of, budget_of
from stallscope.analyzers.result import Diagnosis, PhaseBudget
from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.step.budget import cost_steps, phase_budgets
from stallscope.analyzers.step.limit import Decision, limit_of_budget, part_share
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.simulate import Overhead
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import DeviceSpec, ModelSpec, Subject

T = Thresholds()
GROUPS = ("qkv", "o", "gate_up", "down", "lm_head")
Times = Mapping[str, float]


def machine(times: Times, **limits: float) -> Machine:
    row = {"peak_flops": 1e15, "bytes_per_s": 1e8, **limits}
    probed = {group: ((1, seconds),) for group, seconds in times.items()}
    return Machine(kind="achievable", linear_times=probed, **row)  # type: ignore[arg-type]


def timed(seconds: float, **limits: float) -> tuple[str, float, float]:
    """A linear of 1000 FLOPs and 500 bytes at 100 FLOP/s and 100 B/s, measured at `seconds`."""
    row = {"peak_flops": 100.0, "bytes_per_s": 100.0, **limits}
    one = Operator("q_proj", "qkv", 1, 1, 1000.0, 500.0, 0.0, 0.0)
    time = operator_time(one, machine({"qkv": seconds}, **row), 1.0)
    return time.part, time.time_s, time.explained_s


def test_a_measured_time_is_explained_within_a_factor_of_its_roofline() -> None:
    assert EXPLAINED_WITHIN == 2.0
    # 500 bytes at 100 B/s are 5 s; arithmetic at 1000 FLOP/s is 1 s.
    fast = {"peak_flops": 1000.0}
    assert timed(4.0, **fast) == ("weights", 4.0, 4.0)  # from a cache
    assert timed(10.0, **fast) == ("weights", 10.0, 10.0)
    assert timed(10.1, **fast) == ("weights", 10.1, 10.0)
    assert timed(500.0, **fast) == ("weights", 500.0, 10.0)
    # 1000 FLOPs at 100 FLOP/s are 10 s of arithmetic.
    assert timed(20.0) == ("compute", 20.0, 20.0)
    assert timed(21.0) == ("compute", 21.0, 20.0)


def slow(times: Times) -> CostModel:
    return CostModel(TINY, "fp32", "fp32", machine(times))


def roofline_s() -> dict[str, float]:
    """What bytes explain of one instance of each group, at 100 MB/s."""
    plain = CostModel(TINY, "fp32", "fp32", Machine(1e15, 1e8, "achievable"))
    found = dict.fromkeys(GROUPS, 0.0)
    for t in plain.operator_times(decode_shape(1, 20)):
        if t.operator.group in found:
            found[t.operator.group] += t.time_s / t.operator.instances
    return found


def test_the_rooflines_by_hand() -> None:
    # fp32: weights and one row in and out, 4 bytes each; gate and up each read their own input.
    expected = {
        "qkv": 64 * 128 + 3 * 64 + 128,
        "o": 64 * 64 + 2 * 64,
        "gate_up": 2 * (64 * 160 + 64 + 160),
        "down": 160 * 64 + 160 + 64,
        "lm_head": 64 * 256 + 64 + 256,
    }
    assert roofline_s() == pytest.approx({g: 4 * n / 1e8 for g, n in expected.items()})


def test_the_excess_is_in_the_floor_but_in_no_part() -> None:
    bare = roofline_s()
    model = slow({g: 5 * s for g, s in bare.items()})
    step = model.step_time(decode_shape(1, 20))
    once = 3 * (bare["qkv"] + bare["o"] + bare["gate_up"] + bare["down"]) + bare["lm_head"]
    assert step.weights == pytest.approx(2 * once)
    assert step.excess == pytest.approx(3 * once)
    assert step.floor == pytest.approx(5 * once + step.kv)
    assert (step.compute, step.probed_weights) == (0.0, 0.0)
    (budget,) = phase_budgets(cost_steps([decode(0, 90, 20, host_ns=0)], model), model)
    shares = {p.part: p.time_s for p in budget.budget}
    assert shares["weights"] == pytest.approx(2 * once)
    assert shares["unexplained"] == pytest.approx(0.090 - 2 * once - step.kv)
    assert budget.excess_s == pytest.approx(3 * once)
    bounds = {row.name: row.bound for row in operator_rows("decode", model, decode_shape(1, 20))}
    assert bounds["q_proj"] == "neither"
    assert bounds["attention"] == "memory"


@pytest.mark.parametrize(("times", "bound"), [(2.1, "memory"), (3.9, "memory"), (4.1, "neither")])
def test_an_operator_and_its_phase_are_limited_by_what_takes_most(times: float, bound: str) -> None:
    """Twice its roofline is explained: at four times as much is unexplained, and no more before."""
    model = slow({g: times * s for g, s in roofline_s().items()})
    shape = decode_shape(1, 20)
    rows = [row for row in operator_rows("decode", model, shape) if row.name != "attention"]
    assert {row.bound for row in rows} == {bound}
    whole = sum(row.time_s or 0.0 for row in rows)
    assert sum(row.explained_s or 0.0 for row in rows) == pytest.approx(whole * 2 / times, rel=0.02)
    phase = bound_of(budget_of(model, shape))
    assert phase == {"memory": "bandwidth", "neither": "undetermined"}[bound]


# The property: slower linears on the same bytes are no evidence for bandwidth.

STEP_S = 0.020
multiples = st.fixed_dictionaries({g: st.floats(0.2, 60.0) for g in GROUPS})
# A group's time is shared out by its weights, which are 1 % off its members' rooflines.
past = st.fixed_dictionaries({g: st.floats(1.05 * EXPLAINED_WITHIN, 60.0) for g in GROUPS})
slower = st.floats(1.0, 100.0)


def judged(times: Times, step_s: float = STEP_S) -> tuple[PhaseBudget, Decision]:
    model = slow(times)
    row = decode(0, 1e3 * step_s, 20, host_ns=0)
    (budget,) = phase_budgets(cost_steps([row], model), model)
    return budget, limit_of_budget(budget, T)


def reading(budget: PhaseBudget) -> float:
    return part_share(budget, "weights", "kv")


def linears_s(times: Times) -> float:
    return 3 * sum(times[g] for g in GROUPS if g != "lm_head") + times["lm_head"]


def assert_no_likelier(
    before: tuple[PhaseBudget, Decision], after: tuple[PhaseBudget, Decision]
) -> None:
    assert reading(after[0]) <= reading(before[0]) + 1e-9
    if after[1].bottleneck == "bandwidth":
        assert before[1].bottleneck == "bandwidth"


def of_roofline(times: Times) -> dict[str, float]:
    return {g: times[g] * s for g, s in roofline_s().items()}


@given(times=multiples)
def test_reading_is_at_most_what_was_measured_and_what_bytes_explain(times: Times) -> None:
    seconds, bare = of_roofline(times), roofline_s()
    budget, _ = judged(seconds)
    kv = part_share(budget, "kv")
    most = {g: EXPLAINED_WITHIN * s for g, s in bare.items()}
    assert reading(budget) * STEP_S <= kv * STEP_S + linears_s(most) + 1e-9
    assert reading(budget) * STEP_S <= kv * STEP_S + linears_s(seconds) + 1e-9


@given(times=past, group=st.sampled_from(GROUPS), factor=slower)
def test_past_what_bytes_explain_a_slower_linear_never_makes_bandwidth_likelier(
    times: Times, group: str, factor: float
) -> None:
    seconds = of_roofline(times)
    longer = seconds | {group: factor * seconds[group]}
    assert_no_likelier(judged(seconds), judged(longer))
    grown = STEP_S + linears_s(longer) - linears_s(seconds)
    assert_no_likelier(judged(seconds), judged(longer, grown))


@given(times=multiples, factor=slower)
def test_a_machine_that_slows_everything_down_never_makes_bandwidth_likelier(
    times: Times, factor: float
) -> None:
    seconds = of_roofline(times)
    longer = {g: factor * s for g, s in seconds.items()}
    assert_no_likelier(judged(seconds), judged(longer, factor * STEP_S))


# The case that was reported: a toy of 1.6 MB on a busy CPU.

SMALL = ModelSpec("small", 128, 352, 2, 4, 2, 32, 256, 512)
BUSY_CPU = DeviceSpec("busy cpu", {"fp32": 100e9}, 1 << 33, 12e9, "achievable", is_cpu=True)
# 6.2 of the 13.9 ms of a step: two layers of four groups, and the head.
PROBED = {"qkv": 0.8e-3, "o": 0.4e-3, "gate_up": 0.9e-3, "down": 0.6e-3, "lm_head": 0.8e-3}


def busy_toy(*, host_ms: float = 0.3) -> Diagnosis:
    subject = Subject(model=SMALL, device=BUSY_CPU, dtype="fp32", engine="builtin", concurrency=1)
    host_ns = round(host_ms * MS)
    steps = decodes(60, 13.9, host_ns=host_ns, device_ns=round(13.9 * MS) - host_ns)
    probes = tuple(
        event("probe", probe="linear", op=g, rows=1, time_s=s) for g, s in PROBED.items()
    )
    return diagnose(Capture(subject, steps=steps, events=probes))


def test_a_busy_toy_is_not_limited_by_bandwidth() -> None:
    layer_s = sum(seconds for group, seconds in PROBED.items() if group != "lm_head")
    assert 2 * layer_s + PROBED["lm_head"] == pytest.approx(6.2e-3)
    found = busy_toy()
    (phase,) = found.phases
    # 401,408 elements of weights; in and out: 2 layers of q 256, k and v 192 each, o 256, gate and
    # up 480 each, down 480, and the head 384.
    moved = 4 * (401_408 + 2 * (256 + 2 * 192 + 256 + 3 * 480) + 384)
    assert phase.budget[0].part == "weights"
    assert phase.budget[0].time_s == pytest.approx(60 * 2 * moved / 12e9)
    assert phase.budget[0].share < 0.02
    verdict = found.verdict
    assert (verdict.bottleneck, verdict.between) == ("undetermined", ("host",))
    assert verdict.limits.tpot == "undetermined"
    assert verdict.sentence == (
        "Undetermined, perhaps host: the host takes 2 % of step time, the largest known part; 96 % "
        "is unexplained, 43 % of the step in linears beyond what their bytes and FLOPs explain. "
        "To tell what the rest is, profile a few steps with torch.profiler."
    )
    assert not any("bytes" in remedy.action for remedy in found.remedies)


def test_a_busy_toys_host_may_still_win() -> None:
    assert busy_toy(host_ms=6.0).verdict.bottleneck == "host"


def test_real_decode_at_four_tenths_of_the_memory_stays_bandwidth() -> None:
    """131,072 bytes of weights at 294.912 MB/s in 1 ms: an MBU of 0.44 without KV."""
    times = {"qkv": 0.3e-3, "o": 0.1e-3, "gate_up": 0.2e-3, "down": 0.1e-3, "lm_head": 0.1e-3}
    probes = tuple(event("probe", probe="linear", op=g, rows=1, time_s=s) for g, s in times.items())
    capture = Capture(ON_CPU, steps=decodes(60, device_ns=MS, host_ns=0), events=probes)
    found = diagnose(capture)
    assert found.verdict.bottleneck == "bandwidth"
    assert found.phases[0].excess_s == 0.0


# What-if keeps what a linear takes, whatever the reason.


def test_the_excess_is_no_overhead_of_the_step() -> None:
    model = slow({g: 8 * s for g, s in roofline_s().items()})
    truth = Overhead(per_step=0.002, per_request=0.0005, per_token=0.00002)
    config = SchedulerConfig(
        max_num_seqs=4, max_num_batched_tokens=512, num_blocks=999, block_size=4
    )
    lengths = [(12, 5 + 3 * (i % 6)) for i in range(24)]  # batches of one to four
    replay = replay_of(play(lengths, config, clients=8, truth=truth, cost=model), model)
    assert dataclasses.astuple(replay.low) == pytest.approx(dataclasses.astuple(truth), rel=1e-3)


def test_padding_costs_what_linears_take() -> None:
    """A padded row costs each of a layer's four groups 10 ms more, whatever explains them."""
    probes = tuple(
        event("probe", probe="linear", op=group, rows=rows, time_s=0.010 * rows)
        for group in GROUPS
        for rows in (1, 2)
    )
    padding = {"padded_tokens": 1, "padded_context_tokens": 32, "padded_pairs": 32}
    steps = decodes(1, 200.0, logit_rows=2, **padding)
    found = diagnose(Capture(ON_CPU, steps=steps, events=probes))
    share = next(m.value for m in found.measures if m.name == "padding_time_share")
    attention_s = (32 * 512 + 2 * 64 * 4) / 294_912_000
    assert share == pytest.approx((4 * 0.010 + attention_s) / 0.200)
