"""A server's mean step from its samples, its budget, and MFU and MBU by two ways."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import ON_CPU, TOY_CPU, TOY_GPU, gauges

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.estimated_work import counted_work, decide_by_estimates
from stallscope.analyzers.load.sampled_work import sampled_budgets, sampled_step
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.spec import Subject

T = Thresholds()
SECOND = Span(0, 4_000_000_000)
Series = tuple[float, ...]


def steady(seconds: int = 4, **rates: float) -> Capture:
    """Two run: 1,600 tokens a second in steps of 1.25 ms, 100 tokens of a pool of 1,000."""
    times = range(seconds + 1)
    rising = {"output_tokens_total": 1600.0, "input_tokens_total": 0.0, **rates}
    samples = gauges(
        1000.0,
        running=(2,) * len(times),
        waiting=(0,) * len(times),
        kv_used_fraction=(0.1,) * len(times),
        **{name: tuple(rate * t for t in times) for name, rate in rising.items()},
    )
    return Capture(
        subject=ON_CPU, engine_samples=samples, meta={"metrics_page": {"kv_tokens": 1000.0}}
    )


def cost_of(capture: Capture) -> CostModel:
    cost = build_cost_model(capture)
    assert isinstance(cost, CostModel)
    return cost


def without(capture: Capture, name: str) -> Capture:
    kept = tuple(s for s in capture.engine_samples if s.name != name)
    return dataclasses.replace(capture, engine_samples=kept)


def test_a_step_by_littles_law() -> None:
    capture = steady()
    found = sampled_step(capture, cost_of(capture), SECOND)
    assert found is not None
    assert found.seconds == pytest.approx(2 * 4 / 6400)
    assert found.count == pytest.approx(4 / 0.00125)
    assert (found.rows, found.prompts) == (pytest.approx(2), 0)
    assert found.context == pytest.approx(100)


def test_the_engines_own_gap_between_tokens_goes_first() -> None:
    """1,600 gaps of 1 ms a second: 1,000 steps a second with 1.6 tokens and 0.4 prompt tokens."""
    rates = {"itl_s_sum": 1.6, "itl_s_count": 1600.0, "input_tokens_total": 500.0}
    capture = steady(**rates, cached_tokens_total=100.0, ttft_s_count=10.0)
    found = sampled_step(capture, cost_of(capture), SECOND)
    assert found is not None
    assert (found.seconds, found.count) == (pytest.approx(0.001), pytest.approx(4000))
    assert (found.rows, found.prompts) == (pytest.approx(1.6), pytest.approx(0.4))
    assert found.prompt_length == pytest.approx(50)


def test_only_stretches_in_which_as_many_run_tell_a_steps_length() -> None:
    """Lines of a log whose requests came within the first period and were gone within the last.

    Of the second stretch: 20 · 10 s ÷ 16,000 tokens. By all of them it would be 17 ms:
    (20 + 20 + 10.5 + 0.5) · 10 s ÷ 30,000 tokens.
    """
    samples = gauges(
        10_000.0,
        running=(20, 20, 20, 1, 0),
        waiting=(0,) * 5,
        kv_used_fraction=(0.1,) * 5,
        output_tokens_total=(0, 3000, 19000, 30000, 30000),
        input_tokens_total=(0, 20000, 20000, 20000, 20000),
    )
    meta = {"server_log": {"kv_tokens": 1000.0}}
    capture = Capture(subject=ON_CPU, engine_samples=samples, meta=meta)
    found = sampled_step(capture, cost_of(capture), Span(0, 40_000_000_000))
    assert found is not None
    assert found.seconds == pytest.approx(20 * 10 / 16000)
    assert found.told_by == "the samples"


@pytest.mark.parametrize(("running", "is_told"), [((20, 20, 16), True), ((20, 20, 15), False)])
def test_gauges_a_fifth_apart_still_tell_it(running: Series, is_told: bool) -> None:
    samples = gauges(
        10_000.0,
        running=running,
        waiting=(0,) * 3,
        kv_used_fraction=(0.1,) * 3,
        output_tokens_total=(0, 0, 14400),
        input_tokens_total=(0,) * 3,
    )
    meta = {"server_log": {"kv_tokens": 1000.0}}
    capture = Capture(subject=ON_CPU, engine_samples=samples, meta=meta)
    found = sampled_step(capture, cost_of(capture), Span(0, 20_000_000_000))
    assert (found is not None) == is_told
    if found is not None:
        assert found.seconds == pytest.approx(18 * 10 / 14400)


def test_a_clients_figure_stands_in_where_none_does() -> None:
    """A benchmark printed into the log tells 14 ms a token; it made 20,000 tokens in 20 s."""
    samples = gauges(
        10_000.0,
        running=(20, 1, 0),
        waiting=(0,) * 3,
        kv_used_fraction=(0.1,) * 3,
        output_tokens_total=(0, 10000, 20000),
        input_tokens_total=(0, 20000, 20000),
    )
    printed = {
        "trials": [{"completed": 20, "latency": {"tpot_s": {"mean": 0.014}}}],
        "judged": 0,
    }
    meta = {"server_log": {"kv_tokens": 1000.0}, "printed_benchmark": printed}
    capture = Capture(subject=ON_CPU, engine_samples=samples, meta=meta)
    found = sampled_step(capture, cost_of(capture), Span(0, 20_000_000_000))
    assert found is not None
    assert (found.seconds, found.told_by) == (pytest.approx(0.014), "its client's figures")
    assert found.rows == pytest.approx(14)  # 20,000 ÷ (20 s ÷ 14 ms)
    blind = dataclasses.replace(capture, meta={"server_log": {"kv_tokens": 1000.0}})
    assert sampled_step(blind, cost_of(blind), Span(0, 20_000_000_000)) is None


@pytest.mark.parametrize(
    "name", ["output_tokens_total", "input_tokens_total", "kv_used_fraction", "running"]
)
def test_what_is_not_sampled_leaves_no_step(name: str) -> None:
    capture = without(steady(), name)
    assert sampled_step(capture, cost_of(capture), SECOND) is None
    assert sampled_budgets(capture, cost_of(capture), SECOND) == ()


def test_a_pool_of_unknown_size_leaves_no_step() -> None:
    blind = dataclasses.replace(steady(), meta={})
    assert sampled_step(blind, cost_of(blind), SECOND) is None
    (budget,) = [n for n in diagnose(blind).not_observable if n.what == "the step budget"]
    assert "how large the KV pool is" in budget.reason
    # 512 bytes a token: 512,000 bytes are the same thousand.
    known = dataclasses.replace(blind, subject=dataclasses.replace(ON_CPU, kv_budget_bytes=512_000))
    found = sampled_step(known, cost_of(known), SECOND)
    assert found is not None
    assert found.context == pytest.approx(100)


def test_two_engines_have_no_mean_step() -> None:
    one = steady()
    other = tuple(s._replace(engine="1") for s in one.engine_samples)
    both = dataclasses.replace(one, engine_samples=one.engine_samples + other)
    assert sampled_step(both, cost_of(both), SECOND) is None


# A step of two rows reads 131,072 bytes of weights and 100 tokens of 512 bytes of KV. Of
# 294,912,000 bytes/s and 1.25 ms that is 36 % and 14 %. Activations: eight linears of 64 in and 64
# out, and attention's queries and outputs of 64.
STREAM = 294_912_000 * 0.00125
WEIGHTS, KV = 131_072 / STREAM, 100 * 512 / STREAM
OF_LINEARS, OF_ATTENTION = 8 * 2 * (64 + 64) * 4 / STREAM, 2 * (64 + 64) * 4 / STREAM


def test_where_the_mean_step_goes() -> None:
    capture = steady()
    (budget,) = sampled_budgets(capture, cost_of(capture), SECOND)
    assert (budget.phase, budget.count, budget.time_s) == ("decode", 3200, pytest.approx(4.0))
    shares = {p.part: p.share for p in budget.budget}
    assert shares["weights"] == pytest.approx(WEIGHTS + OF_LINEARS)
    assert shares["kv"] == pytest.approx(KV + OF_ATTENTION)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert sum(p.time_s for p in budget.budget) == pytest.approx(4.0)
    provenance = {p.part: p.provenance for p in budget.budget}
    assert provenance["weights"] == provenance["kv"] == "estimated"
    assert provenance["unexplained"] == "derived"


def test_a_served_server_is_judged_by_it() -> None:
    """Weights and KV take 52 % of 1.25 ms, past 40 %; of 1.67 ms they take 39 %."""
    found = diagnose(steady())
    assert (found.verdict.bottleneck, found.verdict.load) == ("bandwidth", "served")
    assert found.verdict.limits.tpot == found.verdict.limits.ttft == "bandwidth"
    assert [p.phase for p in found.phases] == ["decode"]
    assert any(
        n.startswith("No step was recorded: by the samples a mean one takes 1.25 ms, makes 2 tok")
        for n in found.notes
    )
    slower = diagnose(steady(output_tokens_total=1200.0)).verdict
    assert (slower.bottleneck, slower.between) == ("undetermined", ("bandwidth", "host"))
    assert {w.bottleneck for w in found.windows} == {"bandwidth"}


def test_mbu_by_the_cost_model_is_a_lower_bound() -> None:
    measures = {m.name: m for m in diagnose(steady()).measures}
    assert measures["mbu"].value == pytest.approx(WEIGHTS + KV)
    assert (measures["mbu"].provenance, measures["mbu"].side) == ("bound", "lower")


def test_the_bandwidth_rule_has_its_lower_bound() -> None:
    """The mean step moves 49 % of what memory could; at 2,700 tokens a second 83 %, past 80 %."""
    rules = [
        next(r for r in diagnose(steady(output_tokens_total=rate)).rules if r.id == "bandwidth")
        for rate in (1600.0, 2700.0)
    ]
    assert [r.status for r in rules] == ["not met", "not observable"]  # a CPU has no SM counter
    (low,), (high,) = (r.measures for r in rules)
    assert low.value == pytest.approx(WEIGHTS + KV)
    assert high.value == pytest.approx((WEIGHTS + KV) * 2700 / 1600)
    assert low.side == high.side == "lower"


# The engine's own estimates, on a device of 1e15 FLOP/s and 294,912,000 bytes/s.
DEVICE = Subject(device=TOY_GPU, dtype="fp32")


def estimated(flops: float, read: float, written: float = 0.0) -> Capture:
    """Shares of the device's peaks, as counters of an engine whose model is not known."""
    capture = steady(
        estimated_flops_total=flops * 1e15,
        estimated_read_bytes_total=read * 294_912_000,
        estimated_write_bytes_total=written * 294_912_000,
    )
    return dataclasses.replace(capture, subject=DEVICE)


def test_the_engines_own_estimates() -> None:
    found = {m.name: m for m in diagnose(estimated(0.05, 0.5, 0.02)).measures}
    assert found["mfu"].value == pytest.approx(0.05)
    assert found["mbu"].value == pytest.approx(0.52)
    assert found["mfu"].provenance == found["mbu"].provenance == "estimated"
    assert found["mfu"].source.startswith("estimated_flops_total of one GPU, the engine's own est")
    # Counters that stand still are switched off: they say nothing.
    assert counted_work(estimated(0.0, 0.0), SECOND).flops_per_s is None
    assert counted_work(estimated(0.0, 0.0), SECOND).bytes_per_s is None
    assert not [m for m in diagnose(estimated(0.0, 0.0)).measures if m.name in ("mfu", "mbu")]


def test_time_with_nothing_to_do_does_not_dilute_them() -> None:
    """Two seconds of four are idle."""
    capture = estimated(0.2, 0.2)
    half: tuple[EngineSample, ...] = tuple(
        s._replace(value=0.0 if s.name == "running" else min(s.value, limit))
        if s.t_ns > 2_000_000_000
        else s
        for s in capture.engine_samples
        for limit in [
            next(
                x.value
                for x in capture.engine_samples
                if x.name == s.name and x.t_ns == 2_000_000_000
            )
        ]
    )
    found = counted_work(dataclasses.replace(capture, engine_samples=half), SECOND)
    # The third second begins with two running and ends with none: it counts as busy.
    assert found.flops_per_s == pytest.approx(0.2e15 * 2 / 3)


@pytest.mark.parametrize(
    ("flops", "read", "bottleneck"),
    [
        (0.60, 0.1, "compute"),
        (0.59, 0.1, "undetermined"),
        (0.29, 0.60, "bandwidth"),
        (0.30, 0.60, "undetermined"),
        (0.29, 0.59, "undetermined"),
        (1.01, 0.1, "undetermined"),  # more than the device can do is no estimate of it
        (0.05, 1.01, "undetermined"),
    ],
)
def test_estimates_decide_where_no_model_is_known(
    flops: float, read: float, bottleneck: str
) -> None:
    verdict = diagnose(estimated(flops, read)).verdict
    assert verdict.bottleneck == bottleneck
    if bottleneck != "undetermined":
        assert verdict.confidence <= 0.6
        assert "the engine's own estimate" in verdict.sentence


def test_without_a_device_estimates_say_nothing() -> None:
    blind = dataclasses.replace(estimated(0.7, 0.7), subject=Subject())
    assert decide_by_estimates(blind, SECOND, T) is None
    no_dtype = dataclasses.replace(estimated(0.7, 0.7), subject=Subject(device=TOY_GPU))
    assert decide_by_estimates(no_dtype, SECOND, T) is None  # bytes alone do not exclude arithmetic
    names = [m.name for m in diagnose(no_dtype).measures]
    assert ("mbu" in names, "mfu" in names) == (True, False)


CAPPED = dataclasses.replace(ON_CPU, max_num_seqs=2)


def at_the_cap(subject: Subject, pool: float = 0.1) -> Capture:
    """Two run at a cap of two, and two wait."""
    capture = steady()
    changed = {"waiting": 2.0, "kv_used_fraction": pool}
    samples = tuple(s._replace(value=changed.get(s.name, s.value)) for s in capture.engine_samples)
    tokens = {"metrics_page": {"kv_tokens": 100.0 / pool}}
    return dataclasses.replace(capture, subject=subject, engine_samples=samples, meta=tokens)


def test_the_cost_model_bounds_what_a_higher_cap_buys() -> None:
    """Twice as many read the weights once, and twice the KV and the activations.

    That is 1.25 ms and 60,416 bytes of 294,912,000 bytes/s more: 1.455 ms for twice the tokens.
    """
    more = (8 * 2 * (64 + 64) * 4 + 100 * 512 + 2 * (64 + 64) * 4) / 294_912_000
    most = 2 * 0.00125 / (0.00125 + more) - 1
    assert most == pytest.approx(0.718, abs=0.001)
    found = diagnose(at_the_cap(CAPPED))
    assert "; raising the cap would buy at most 72 % tokens/s." in found.verdict.sentence
    (gain,) = [r.gain for r in found.remedies if "sequence cap" in r.action]
    assert gain is not None
    assert gain.before == pytest.approx(1600)
    assert gain.after * (1 + gain.error) == pytest.approx(1600 * (1 + most))


def test_steps_full_of_arithmetic_gain_nothing() -> None:
    """2 · 2 · 32,768 and 4 · 64 · 100 FLOPs fill 1.25 ms; twice as many fill twice of it."""
    slow = dataclasses.replace(TOY_CPU, peak_flops={"fp32": 156_672 / 0.00125})
    found = diagnose(at_the_cap(dataclasses.replace(CAPPED, device=slow)))
    assert ", but raising the cap buys nothing: the step itself is the limit." in (
        found.verdict.sentence
    )


def test_a_floor_above_the_step_bounds_nothing() -> None:
    slow = dataclasses.replace(TOY_CPU, peak_flops={"fp32": 156_672 / 0.00132})  # 6 % above it
    found = diagnose(at_the_cap(dataclasses.replace(CAPPED, device=slow)))
    assert "the step itself" not in found.verdict.sentence
    assert "what raising the sequence cap would buy" in [n.what for n in found.not_observable]


def test_the_pool_bounds_it_too() -> None:
    """Two fill 60 % of the pool: 3.3 fit, and four are there."""
    found = diagnose(at_the_cap(CAPPED, pool=0.6)).verdict
    assert found.next_limit == "capacity"
