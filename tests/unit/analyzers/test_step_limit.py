"""The limit of a served step: just past each line, just under it, and where it is blocked."""

from __future__ import annotations

import dataclasses

import pytest

from stallscope.analyzers.classes import PARTS
from stallscope.analyzers.result import BudgetPart, PhaseBudget
from stallscope.analyzers.step.limit import Decision, compute_phase, limit_of_budget, part_share
from stallscope.analyzers.thresholds import Thresholds

T = Thresholds()


def budget(source: str = "roofline against the datasheet peak", **shares: float) -> PhaseBudget:
    """A second of steps; what is not named goes to unexplained."""
    shares.setdefault("unexplained", 1.0 - sum(shares.values()))
    provenance = {"host": "measured", "unexplained": "derived"}
    rows = tuple(
        BudgetPart(
            p, shares.get(p, 0.0), shares.get(p, 0.0), provenance.get(p, "estimated"), source
        )  # type: ignore[arg-type]
        for p in PARTS
    )
    return PhaseBudget("decode", 10, 1.0, 1.0, 0.1, rows)


def limit(**shares: float) -> Decision:
    return limit_of_budget(budget(**shares), T)


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("weights", "bandwidth"),
        ("kv", "bandwidth"),
        ("compute", "compute"),
        ("host", "host"),
        ("communication", "interconnect"),
        ("transfer", "interconnect"),
    ],
)
def test_each_part_has_its_class_just_past_the_line_and_none_under_it(
    part: str, expected: str
) -> None:
    assert limit(**{part: 0.401}).bottleneck == expected
    assert limit(**{part: 0.400}).bottleneck == expected
    assert limit(**{part: 0.399}).bottleneck == "undetermined"


def test_weights_and_kv_are_one_resource() -> None:
    decision = limit(weights=0.25, kv=0.20, compute=0.3)
    assert decision.bottleneck == "bandwidth"
    assert decision.share == pytest.approx(0.45)
    assert (decision.next_class, decision.next_share) == ("compute", 0.3)
    assert decision.unexplained == pytest.approx(0.25)


def test_the_next_must_be_a_quarter_smaller() -> None:
    assert limit(compute=0.46, host=0.46 / 1.24).bottleneck == "undetermined"
    assert limit(compute=0.46, host=0.46 / 1.26).bottleneck == "compute"
    close = limit(compute=0.46, host=0.40)
    assert close.between == ("compute", "host")
    assert "too close to call" in close.reason


def test_unexplained_never_competes() -> None:
    assert limit(weights=0.41, unexplained=0.59).bottleneck == "bandwidth"


def test_under_the_line_the_host_stays_a_candidate() -> None:
    assert limit(weights=0.35).between == ("bandwidth", "host")
    assert limit(host=0.35, compute=0.1).between == ("host", "compute")
    # What takes hardly anything is no candidate.
    assert limit(host=0.35, compute=0.049).between == ("host",)
    assert limit(weights=0.049, host=0.01).between == ("host",)
    assert limit(weights=0.051, host=0.01).between == ("bandwidth", "host")
    assert "65" in limit(weights=0.35).reason
    # With little unexplained, no host can hide in it.
    assert limit(weights=0.36, compute=0.34, host=0.28).between == ("bandwidth", "compute")
    assert limit(weights=0.36, compute=0.3, unexplained=0.34).between == ("bandwidth", "host")


def test_what_takes_hardly_anything_is_not_the_largest_part() -> None:
    assert limit(communication=0.0049).reason == (
        "every known part takes less than 1 % of step time; 100 % is unexplained"
    )
    assert limit(communication=0.0051).reason.startswith("communication and transfer take 1 %")


def test_a_traced_host_does_not_hide_in_the_unexplained() -> None:
    """Kernels ran in the rest: bandwidth or compute limits these, whichever is more so far."""

    def traced(**shares: float) -> Decision:
        return limit_of_budget(dataclasses.replace(budget(**shares), is_host_traced=True), T)

    slow = traced(weights=0.28, kv=0.09, host=0.064)
    assert slow.between == ("bandwidth", "compute")
    assert slow.reason == (
        "reading weights and KV takes 37 % of step time, the largest known part; 57 % is "
        "unexplained; kernels ran in that time, so it is not the host's"
    )
    assert traced(compute=0.3, weights=0.1).between == ("compute", "bandwidth")
    # What is largest so far stays one of them, whatever it is.
    assert traced(host=0.3).between == ("host", "bandwidth", "compute")
    assert traced(communication=0.3).between == ("interconnect", "bandwidth", "compute")
    # With little unexplained, the two largest are left.
    assert traced(weights=0.36, host=0.34, compute=0.28).between == ("bandwidth", "host")
    # A class that fills enough decides as ever.
    assert traced(weights=0.401).bottleneck == "bandwidth"


def test_a_host_that_is_not_seen_may_be_more_than_what_is() -> None:
    """Were all of the rest the host's, no class would be clear of it: 0.556 ÷ 0.444 is 1.25."""

    def most(**shares: float) -> float:
        found = budget(**shares)
        parts = tuple(
            dataclasses.replace(p, provenance="bound", side="lower") if p.part == "host" else p
            for p in found.budget
        )
        return limit_of_budget(dataclasses.replace(found, budget=parts), T).cap

    assert most(weights=0.5) == most(weights=0.555) == 0.65
    assert most(weights=0.5, compute=0.3) == most(weights=0.556) == 0.99
    assert most(host=0.5, weights=0.1) == 0.99
    assert limit(weights=0.5).cap == 0.99  # the host's time was measured: it is in no other part


def test_linears_beyond_what_explains_them_are_said() -> None:
    slow = dataclasses.replace(budget(host=0.1), excess_s=0.43)  # of a second
    reason = "the host takes 10 % of step time, the largest known part; 90 % is unexplained"
    assert limit_of_budget(slow, T).reason == (
        f"{reason}, 43 % of the step in linears beyond what their bytes and FLOPs explain"
    )
    assert limit_of_budget(dataclasses.replace(slow, excess_s=0.049), T).reason == reason
    # Timed by themselves they may take longer than the whole step: no share of it.
    for all_of_it in (0.9, 1.38):
        assert limit_of_budget(dataclasses.replace(slow, excess_s=all_of_it), T).reason == (
            f"{reason}, all of it in linears beyond what their bytes and FLOPs explain"
        )


def test_a_small_runner_up_is_not_named() -> None:
    assert limit(weights=0.7, host=0.051).next_class == "host"
    assert limit(weights=0.7, host=0.049).next_class is None


@pytest.mark.parametrize("part", ["weights", "compute"])
def test_a_model_error_blocks_what_the_model_says(part: str) -> None:
    sound = limit(**{part: 1.049})
    assert sound.bottleneck in ("bandwidth", "compute")
    wrong = limit(**{part: 1.051})
    assert wrong.bottleneck == "undetermined"
    assert wrong.reason == "the cost model's floor is 5 % above the measured step"


def test_the_floor_is_not_blamed_for_the_hosts_time() -> None:
    """A floor of 90 % of the step is not above it; with 32 % of host time it is."""
    assert limit(weights=0.9, host=0.32).reason == (
        "the cost model's floor and the host's time together are 22 % above the measured step"
    )


def test_a_model_error_does_not_block_the_hosts_own_clock() -> None:
    host = limit(host=0.7, weights=0.4)  # 10 % too much
    assert host.bottleneck == "host"
    assert host.reason == (
        "the host takes 70 % of step time; yet the cost model's floor and the host's time "
        "together are 10 % above the measured step"
    )
    assert limit(communication=0.8, compute=0.3).bottleneck == "interconnect"


def test_quality_is_that_of_the_winning_parts() -> None:
    assert limit(host=0.6).quality == 1.0  # measured
    assert limit(weights=0.6).quality == 0.4  # estimated
    probed = BudgetPart("weights", 0.6, 0.6, "derived", "linears probed")
    assert limit_of_budget(PhaseBudget("decode", 1, 1.0, 1.0, 1.0, (probed,)), T).quality == 0.7


def test_quality_is_weighed_by_time() -> None:
    rows = (
        BudgetPart("weights", 0.45, 0.45, "derived", "linears probed"),
        BudgetPart("kv", 0.15, 0.15, "estimated", "roofline against the achievable peak"),
    )
    decision = limit_of_budget(PhaseBudget("decode", 1, 1.0, 1.0, 1.0, rows), T)
    assert decision.quality == pytest.approx((3 * 0.7 + 1 * 0.4) / 4)


def test_thresholds_move_the_lines() -> None:
    shares = budget(compute=0.5, host=0.3)
    assert limit_of_budget(shares, Thresholds(limit_share=0.51)).bottleneck == "undetermined"
    assert limit_of_budget(shares, Thresholds(limit_margin=1.7)).bottleneck == "undetermined"
    over = budget(compute=1.2)
    assert limit_of_budget(over, Thresholds(model_error=-0.21)).bottleneck == "compute"


def test_part_share_sums_the_named_parts() -> None:
    assert part_share(budget(weights=0.2, kv=0.3), "weights", "kv", "host") == pytest.approx(0.5)


def test_the_phase_that_holds_the_arithmetic() -> None:
    def phase(name: str, time_s: float, compute: float) -> PhaseBudget:
        part = BudgetPart("compute", compute * time_s, compute, "estimated", "roofline")
        return PhaseBudget(name, 1, time_s, 1.0, time_s, (part,))

    whole = phase("all", 4.0, 0.5)
    # 0.5 · 1 s of prompts against 0.4 · 3 s of decode; with a mixed step of 1.2 s they tie.
    assert compute_phase((phase("prefill", 1.0, 0.5), phase("decode", 3.0, 0.4), whole)) == "decode"
    mixed = phase("mixed", 2.0, 0.5)
    assert compute_phase((mixed, phase("decode", 2.0, 0.4), whole)) == "prefill"
    assert compute_phase(()) == "prefill"
