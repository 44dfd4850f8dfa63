"""Where the time of steps went: gaps, host, floor and the rest, and the document's worked case."""

from __future__ import annotations

import dataclasses
import math
import random
from typing import Any

import pytest
from step_rows import MS, TINY, decode, free_model, prefill, step

from stallscope.analyzers.classes import PARTS
from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.operators import StepShape
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.result import BudgetPart, PhaseBudget
from stallscope.analyzers.step.budget import (
    cost_steps,
    measured_steps,
    overall,
    phase_budgets,
    repeated,
)
from stallscope.analyzers.step.shape import step_shape
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import Subject


def parts(budget: PhaseBudget) -> dict[str, float]:
    return {p.part: p.time_s for p in budget.budget}


def gap_s(*steps: Step) -> float:
    """What the last step is charged beyond its own span."""
    last = cost_steps(steps, None)[-1]
    return last.time_s - (last.step.end_ns - last.step.start_ns) * 1e-9


def test_a_gap_before_a_decode_step_is_the_hosts() -> None:
    assert gap_s(step(0, 10), step(14, 20)) == pytest.approx(0.004)
    priced = cost_steps([step(0, 10), step(14, 20, host_ns=1 * MS)], None)[1]
    assert (priced.time_s, priced.host_s) == pytest.approx((0.010, 0.005))


def test_a_gap_before_a_pure_prefill_is_nobodys() -> None:
    arrived = prefill(14, 20, 8)
    assert gap_s(step(0, 10), arrived) == 0.0
    # Unless something already waited when the step before ended.
    assert gap_s(step(0, 10, waiting=2), arrived) == pytest.approx(0.004)
    assert gap_s(step(0, 10, waiting=0), arrived) == 0.0


def test_a_mixed_step_after_a_gap_carried_work_over() -> None:
    mixed = step(14, 20, phase="mixed", prefill_requests=1, prefill_tokens=4, decode_requests=2)
    assert gap_s(prefill(0, 10, 8), mixed) == pytest.approx(0.004)


def test_no_gap_without_a_step_before_it_on_the_same_rank() -> None:
    assert gap_s(step(14, 20)) == 0.0
    assert gap_s(step(0, 10, rank=0), step(14, 20, rank=1)) == 0.0


def test_overlapping_steps_have_no_negative_gap() -> None:
    assert gap_s(step(0, 15), step(14, 20)) == 0.0


def test_steps_that_count_are_by_rank_and_time_without_warm_up() -> None:
    rows = [
        step(30, 40, id=4, rank=1),
        step(20, 30, id=3),
        step(0, 10, id=1, warmup=True),
        step(10, 20, id=2, rank=1),
        step(11, 19, id=5),
    ]
    assert [s.id for s in measured_steps(Capture(steps=tuple(rows)))] == [5, 3, 2, 4]


def test_the_shape_of_a_recorded_step() -> None:
    row = prefill(0, 1, 12, decode_requests=3, context_tokens=40, attention_pairs=99)
    assert step_shape(row) == StepShape(15, 1, 40, 99)
    # Where logit rows were not counted, every request samples.
    assert step_shape(row._replace(logit_rows=None)) == StepShape(15, 4, 40, 99)
    assert step_shape(row._replace(context_tokens=None)) is None
    assert step_shape(row._replace(attention_pairs=None)) is None


SLOW = CostModel(TINY, "fp16", "fp16", Machine(1e9, 1e8, "datasheet"))


def test_parts_sum_to_the_time_and_the_rest_is_unexplained() -> None:
    costs = cost_steps([decode(0, 10, 5, host_ns=2 * MS), decode(11, 20, 6, host_ns=2 * MS)], SLOW)
    (budget,) = phase_budgets(costs, SLOW)
    found = parts(budget)
    assert tuple(found) == PARTS
    assert (budget.phase, budget.count, budget.share) == ("decode", 2, 1.0)
    assert budget.time_s == pytest.approx(0.020)  # 10 + 9 and a gap of 1
    assert budget.mean_step_s == pytest.approx(0.010)
    assert found["host"] == pytest.approx(0.005)  # 2 + 2 and the gap
    # By hand in test_roofline: weights and activations of one fp16 row, twice.
    weights = 2 * (3 * (8192 + 4096 + 30_720) + 16_384)
    activations = 2 * (3 * (2 * 128 + 2 * 96 + 3 * 224) + 320)
    assert found["weights"] == pytest.approx(2 * (weights + activations) / 1e8)
    assert found["kv"] == pytest.approx(2 * 3 * (2 * 32 * (5 + 6) + 2 * 2 * 64) / 1e8)
    known = found["weights"] + found["kv"] + 0.005
    assert found["unexplained"] == pytest.approx(0.020 - known)
    assert sum(p.share for p in budget.budget) == pytest.approx(1.0)


def test_unexplained_is_negative_where_the_floor_is_above_the_measured_step() -> None:
    costs = cost_steps([decode(0, 1, 5)], SLOW)
    (budget,) = phase_budgets(costs, SLOW)
    # The floor is about 3 ms (some 290 KB of weights at 100 MB/s); the step took 1.
    floor = costs[0].floor
    assert floor is not None
    assert sum(floor.values()) > 0.0029
    assert parts(budget)["unexplained"] == pytest.approx(0.001 - sum(floor.values()))
    assert costs[0].unexplained_s == parts(budget)["unexplained"]


def test_no_budget_where_a_step_does_not_say_its_context() -> None:
    known, unknown = decode(0, 1, 5), step(1, 2)
    costs = cost_steps([known, unknown], SLOW)
    assert costs[1].floor is None
    assert costs[1].unexplained_s is None
    assert [b.budget for b in phase_budgets(costs, SLOW)] == [()]
    assert [b.budget for b in phase_budgets(cost_steps([known], None), None)] == [()]
    assert overall(()) is None


def test_phases_sum_to_all() -> None:
    rng = random.Random(3)
    rows, now = [], 0.0
    for _ in range(60):
        start, end = now + rng.uniform(0, 2), now + rng.uniform(3, 9)
        host = rng.randint(0, MS)
        if rng.random() < 0.3:
            rows.append(
                prefill(start, end, rng.randint(1, 30), host_ns=host, waiting=rng.randint(0, 1))
            )
        else:
            rows.append(decode(start, end, rng.randint(1, 90), host_ns=host))
        now = end
    costs = cost_steps(rows, SLOW)
    *phases, total = phase_budgets(costs, SLOW)
    assert [b.phase for b in phases] == ["prefill", "decode"]
    assert (total.phase, total.share, total.count) == ("all", 1.0, 60)
    assert overall((*phases, total)) is total
    assert sum(b.time_s for b in phases) == pytest.approx(total.time_s)
    assert sum(b.share for b in phases) == pytest.approx(1.0)
    for part in PARTS:
        assert sum(parts(b)[part] for b in phases) == pytest.approx(parts(total)[part], abs=1e-12)
    assert math.fsum(parts(total).values()) == pytest.approx(total.time_s)


def test_where_each_part_is_from() -> None:
    def sources(cost: CostModel, row: Step) -> dict[str, tuple[str, str]]:
        (budget,) = phase_budgets(cost_steps([row], cost), cost)
        return {p.part: (p.provenance, p.source) for p in budget.budget}

    plain = sources(SLOW, decode(0, 9, 5))
    assert plain["weights"] == ("estimated", "roofline against the datasheet peak")
    assert plain["host"] == ("bound", "gaps between steps; time inside them was not marked")
    assert plain["communication"] == ("derived", "one device")
    assert plain["transfer"] == ("bound", "copies were not recorded")
    assert plain["unexplained"] == ("derived", "step time − the parts above")
    probed = dataclasses.replace(
        SLOW.machine, linear_times={"o": ((1, 0.0001),)}, kind="achievable"
    )
    measured = sources(CostModel(TINY, "fp16", "fp16", probed), decode(0, 9, 5, host_ns=1))
    # Three layers' o_proj at 0.1 ms, 8,448 bytes each; the other linears by their bytes at 100 MB/s
    # are 2.68 ms.
    others = "probed at the run's own row counts, the rest roofline against the achievable peak"
    assert measured["weights"] == ("estimated", f"10 % linears {others}")
    assert measured["kv"] == ("estimated", "roofline against the achievable peak")
    both = ("measured", "step time outside the forward call, and gaps between steps")
    assert measured["host"] == both


def test_probed_linears_are_all_of_the_weights_and_attention_is_not() -> None:
    # fp16 at 100 MB/s: by bytes 0.17, 0.085, 0.41, 0.21 and 0.33 ms.
    ms = {"qkv": 0.2, "o": 0.1, "gate_up": 0.6, "down": 0.4, "lm_head": 0.5}
    times = {group: ((1, 1e-3 * value),) for group, value in ms.items()}
    machine = dataclasses.replace(SLOW.machine, linear_times=times, peak_flops=1e6)
    # 1e6 FLOP/s: linears and attention are both bound by arithmetic.
    cost = CostModel(TINY, "fp16", "fp16", machine)
    (budget,) = phase_budgets(cost_steps([decode(0, 90, 500)], cost), cost)
    compute = next(p for p in budget.budget if p.part == "compute")
    # 3 · 1.3 ms and the head: 4.4 ms. Attention: 3 · 4 · 64 · 500 FLOPs = 384 ms.
    assert compute.time_s == pytest.approx(0.0044 + 0.384)
    assert (compute.provenance, compute.source[:12]) == ("estimated", "1 % linears ")
    machine = dataclasses.replace(machine, peak_flops=1e9)
    cost = CostModel(TINY, "fp16", "fp16", machine)
    (budget,) = phase_budgets(cost_steps([decode(0, 90, 5)], cost), cost)
    weights = next(p for p in budget.budget if p.part == "weights")
    assert (weights.time_s, weights.source) == (
        pytest.approx(0.0044),
        "linears probed at the run's own row counts",
    )


def test_links_between_devices() -> None:
    def communication(**facts: Any) -> tuple[str, str, str | None]:
        cost = CostModel(TINY, "fp16", "fp16", dataclasses.replace(SLOW.machine, ranks=2, **facts))
        (budget,) = phase_budgets(cost_steps([decode(0, 9, 5)], cost), cost)
        part = next(p for p in budget.budget if p.part == "communication")
        return part.provenance, part.source, part.side

    unknown = ("bound", "the link between the devices is not known", "lower")
    assert communication() == unknown
    linked = ("estimated", "all-reduce bytes ÷ link bandwidth", None)
    assert communication(link_bytes_per_s=1e9) == linked


def test_a_machine_without_limits_leaves_everything_unexplained() -> None:
    (budget,) = phase_budgets(cost_steps([decode(0, 4, 5)], free_model()), free_model())
    assert parts(budget)["unexplained"] == pytest.approx(0.004)


def worked_case() -> tuple[Step, ...]:
    """50 ms over a prompt of 512, then 256 steps of 25 ms over contexts 513 to 768."""
    first = prefill(0, 50, 512)
    return (first, *(decode(50 + 25 * i, 75 + 25 * i, 513 + i) for i in range(256)))


@pytest.mark.parametrize(
    ("device", "bandwidth", "read", "rest"),
    [("a100-sxm4-40gb", 1.555e12, 0.349, 0.651), ("a100-sxm4-80gb", 2.039e12, 0.266, 0.734)],
)
def test_the_worked_case_of_the_document(
    device: str, bandwidth: float, read: float, rest: float
) -> None:
    subject = Subject(model=load_model("llama-7b"), device=load_device(device), dtype="fp16")
    cost = build_cost_model(Capture(subject=subject))
    assert isinstance(cost, CostModel)
    budgets = {b.phase: b for b in phase_budgets(cost_steps(worked_case(), cost), cost)}
    share = {p.part: p.share for p in budgets["decode"].budget}
    # 13,214,154,752 B of weights and 640.5 x 524,288 B of KV against the bandwidth, over 25 ms.
    hand = (13_214_154_752 + 640.5 * 524_288) / bandwidth / 0.025
    assert share["weights"] + share["kv"] == pytest.approx(hand, rel=0.001)  # activations
    assert share["weights"] + share["kv"] == pytest.approx(read, abs=0.005)
    assert share["unexplained"] + share["host"] == pytest.approx(rest, abs=0.005)
    assert share["host"] == 0.0
    assert budgets["decode"].share == pytest.approx(6.4 / 6.45)  # 99.2 %
    assert budgets["decode"].mean_step_s == pytest.approx(0.025)


def test_a_window_cuts_what_a_loop_states_in_whole() -> None:
    """Window 10. A capture that already counts within the window is left as it is."""
    # One prompt of 12 after 30 cached: 9 + 12 keys, ten for each token.
    whole = prefill(0, 1, 12, context_tokens=42, attention_pairs=12 * 30 + 78)
    assert step_shape(whole, 10) == StepShape(12, 1, 21, 120)
    exact = whole._replace(context_tokens=21, attention_pairs=120)
    assert step_shape(exact, 10) == StepShape(12, 1, 21, 120)
    # A prompt of 12 from the start: 1 + 2 + … + 10 + 10 + 10 pairs.
    assert step_shape(prefill(0, 1, 12), 10) == StepShape(12, 1, 12, 75)
    # Three decodes over 40 keys in all read 30 at most.
    row = step(0, 1, decode_requests=3, context_tokens=40, attention_pairs=40)
    assert step_shape(row, 10) == StepShape(3, 3, 30, 30)
    short = row._replace(context_tokens=25, attention_pairs=25)
    assert step_shape(short, 10) == StepShape(3, 3, 25, 25)


def test_steps_are_priced_within_the_models_window() -> None:
    windowed = dataclasses.replace(TINY, sliding_window=10)
    machine = Machine(1e9, 1e8, "datasheet")
    (long,) = cost_steps([decode(0, 1, 400)], CostModel(windowed, "fp16", "fp16", machine))
    (short,) = cost_steps([decode(0, 1, 10)], CostModel(TINY, "fp16", "fp16", machine))
    (whole,) = cost_steps([decode(0, 1, 400)], CostModel(TINY, "fp16", "fp16", machine))
    assert long.floor == short.floor != whole.floor


def test_a_mean_step_taken_many_times_keeps_its_shares() -> None:
    """Of 5 ms 2 ms are weights, and 1 ms is what linears take beyond their bytes."""
    part = BudgetPart("weights", 0.002, 0.4, "estimated", "roofline")
    one = PhaseBudget("decode", 1, 0.005, 1.0, 0.005, (part,), excess_s=0.001)
    (many,) = repeated((one,), 100)
    assert (many.count, many.time_s, many.mean_step_s) == (100, pytest.approx(0.5), 0.005)
    assert (many.budget[0].time_s, many.budget[0].share) == (pytest.approx(0.2), 0.4)
    assert many.excess_s / many.time_s == pytest.approx(0.2)
