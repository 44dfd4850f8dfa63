"""Which limit kept the queue out: by the engine's word, by its gauges, by sampled gauges."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, decodes, gauges, request, step

from stallscope.analyzers.judge import admission_decision
from stallscope.analyzers.load.admission import (
    Admission,
    head_need_bytes,
    limit_of_step,
    observe_admission,
)
from stallscope.analyzers.load.demand import Span
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.spec import Subject

LIMITS = Subject(max_num_seqs=4, max_num_batched_tokens=100)
FREE = {"kv_used_bytes": 100, "kv_total_bytes": 1000}


def ms(end: float) -> Span:
    return Span(0, round(end * MS))


@pytest.mark.parametrize("word", ["kv", "seqs", "tokens"])
def test_the_engines_own_word_comes_first(word: str) -> None:
    at_every_cap = step(0, 0, 1, running=4, kv_used_bytes=1000, kv_total_bytes=1000)
    blocked = dataclasses.replace(at_every_cap, waiting=1, blocked_by=word)
    assert limit_of_step(blocked, LIMITS, None) == word


def test_a_word_that_nobody_knows_is_unknown() -> None:
    assert limit_of_step(step(0, 0, 1, blocked_by="lora", **FREE), LIMITS, None) == "unknown"


@pytest.mark.parametrize(
    ("facts", "need", "limit"),
    [
        ({"running": 2, "kv_used_bytes": 900, "kv_total_bytes": 1000}, 101, "kv"),
        ({"running": 2, "kv_used_bytes": 900, "kv_total_bytes": 1000}, 100, "unknown"),
        ({"running": 2, "kv_used_bytes": 950, "kv_total_bytes": 1000}, None, "kv"),
        ({"running": 2, "kv_used_bytes": 949, "kv_total_bytes": 1000}, None, "unknown"),
        ({"running": 4, **FREE}, None, "seqs"),
        ({"running": 3, **FREE}, None, "unknown"),
        ({"running": None, "kv_used_bytes": None}, None, "unknown"),
        ({"running": 4, "kv_used_bytes": 1000, "kv_total_bytes": 1000}, None, "kv"),
    ],
)
def test_by_the_gauges_of_a_step(facts: dict[str, int], need: int | None, limit: str) -> None:
    assert limit_of_step(step(0, 0, 1, waiting=1, **facts), LIMITS, need) == limit


@pytest.mark.parametrize(
    ("prefill", "decode", "limit"),
    [(94, 1, "tokens"), (93, 1, "unknown"), (0, 99, "unknown"), (0, 0, "stalled")],
)
def test_by_the_tokens_of_a_step(prefill: int, decode: int, limit: str) -> None:
    full = step(
        0, 0, 1, phase="mixed", prefill_tokens=prefill, decode_requests=decode, running=2, **FREE
    )
    assert limit_of_step(full, LIMITS, None) == limit


def test_shares_are_by_time_and_only_while_something_waits() -> None:
    steps = (
        step(0, 0, 3, waiting=1, running=1, blocked_by="kv"),
        step(1, 3, 1, waiting=2, running=1, blocked_by="seqs"),
        step(2, 4, 4, waiting=0, running=1),
        step(3, 8, 9, waiting=1, running=1, blocked_by="tokens", warmup=True),
    )
    found = observe_admission(Capture(steps=steps), ms(20), None)
    assert found is not None
    assert found.shares == pytest.approx({"kv": 0.75, "seqs": 0.25})
    assert found.share_waiting == pytest.approx(0.5)  # 4 of 8 ms
    assert found.provenance == "measured"
    assert found.ranked() == (("kv", 0.75), ("seqs", 0.25))


def test_gauges_alone_are_derived() -> None:
    steps = decodes(2, waiting=1, running=4, **FREE)
    found = observe_admission(Capture(subject=LIMITS, steps=steps), ms(2), None)
    assert found is not None
    assert (found.shares, found.provenance) == ({"seqs": 1.0}, "derived")


def test_nothing_waited_or_nothing_tells() -> None:
    idle = Capture(steps=decodes(2, waiting=0, running=4))
    assert observe_admission(idle, ms(2), None) is None
    assert observe_admission(Capture(steps=decodes(2)), ms(2), None) is None
    assert observe_admission(Capture(), ms(2), None) is None


def test_only_the_span_counts() -> None:
    steps = (
        step(0, 0, 5, waiting=1, running=1, blocked_by="kv"),
        step(1, 5, 5, waiting=1, running=1, blocked_by="seqs"),
    )
    late = observe_admission(Capture(steps=steps), Span(5 * MS, 10 * MS), None)
    assert late is not None
    assert late.shares == {"seqs": 1.0}


def test_the_heads_need_is_the_shortest_prompts() -> None:
    rows = (request(0, 0, 0, 1, 2), request(1, 0, 0, 1, 2, input_tokens=10))
    assert head_need_bytes(Capture(requests=rows), 512) == 5120
    assert head_need_bytes(Capture(requests=rows), None) is None
    assert head_need_bytes(Capture(), 512) is None


def sampled(count: int = 3, **series: tuple[float, ...] | float) -> Admission | None:
    rows = {
        name: value if isinstance(value, tuple) else (float(value),) * count
        for name, value in series.items()
    }
    samples: tuple[EngineSample, ...] = gauges(**rows)
    capture = Capture(subject=LIMITS, engine_samples=samples)
    return observe_admission(capture, ms(count - 1), None)


@pytest.mark.parametrize(
    ("series", "limit"),
    [
        ({"running": 2, "kv_used_bytes": 950, "kv_total_bytes": 1000}, "kv"),
        ({"running": 4, "kv_used_bytes": 949, "kv_total_bytes": 1000}, "seqs"),
        ({"running": 4}, "seqs"),
        ({"running": 2, "front_waiting": 3}, "front"),
        ({"running": 2, "front_waiting": 2}, "unknown"),
        (
            {"running": 2, "kv_used_bytes": 1, "kv_total_bytes": 9, "output_tokens_total": 7},
            "stalled",
        ),
        ({"running": 2, "output_tokens_total": 7}, "unknown"),  # free KV is not known
        ({"running": 2, "kv_used_bytes": 1, "kv_total_bytes": 9}, "unknown"),  # nor is progress
    ],
)
def test_by_sampled_gauges(series: dict[str, float], limit: str) -> None:
    found = sampled(waiting=2, **series)
    assert found is not None
    assert (found.shares, found.share_waiting) == ({limit: 1.0}, 1.0)
    assert found.provenance == "derived"


def test_progress_under_no_cap_is_unknown_and_not_stalled() -> None:
    found = sampled(
        waiting=2, running=2, kv_used_bytes=1, kv_total_bytes=9, output_tokens_total=(1, 2, 3)
    )
    assert found is not None
    assert found.shares == {"unknown": 1.0}


def test_a_flat_prompt_rate_under_no_cap_is_the_token_budget() -> None:
    """Four intervals at 100, 110, 90 and 100 tokens: spread 7 % of the mean."""
    flat = sampled(5, waiting=2, running=2, input_tokens_total=(0, 100, 210, 300, 400))
    assert flat is not None
    assert flat.shares == {"tokens": 1.0}
    bursts = sampled(5, waiting=2, running=2, input_tokens_total=(0, 400, 400, 400, 400))
    assert bursts is not None
    assert bursts.shares == {"unknown": 1.0}
    too_few = sampled(4, waiting=2, running=2, input_tokens_total=(0, 100, 200, 300))
    assert too_few is not None
    assert too_few.shares == {"unknown": 1.0}


def test_sampled_shares_are_by_time() -> None:
    found = sampled(
        5,
        waiting=(1, 1, 1, 0, 0),
        running=(4, 1, 1, 4, 4),
        kv_used_bytes=(0, 99, 99, 0, 0),
        kv_total_bytes=100,
    )
    assert found is not None
    assert found.shares == pytest.approx({"kv": 2 / 3, "seqs": 1 / 3})
    assert found.share_waiting == pytest.approx(3 / 4)


def admission(**shares: float) -> Admission:
    return Admission(shares, 1.0, "measured", "a test")


@pytest.mark.parametrize(
    ("limit", "bottleneck"),
    [
        ("kv", "capacity"),
        ("seqs", "scheduling"),
        ("tokens", "compute"),
        ("stalled", "scheduling"),
        ("front", "host"),
    ],
)
def test_each_limit_has_its_class(limit: str, bottleneck: str) -> None:
    decision = admission_decision(admission(**{limit: 1.0}))
    assert (decision.bottleneck, decision.limit, decision.share) == (bottleneck, limit, 1.0)


def test_the_majority_decides_and_the_next_is_named() -> None:
    decision = admission_decision(admission(kv=0.6, seqs=0.4))
    assert (decision.bottleneck, decision.next_class) == ("capacity", "scheduling")
    assert (decision.share, decision.next_share) == (0.6, 0.4)
    small = admission_decision(admission(kv=0.95, seqs=0.05))
    assert (small.bottleneck, small.next_class) == ("capacity", None)


@pytest.mark.parametrize(
    ("shares", "between"),
    [
        ({"kv": 0.45, "seqs": 0.35, "tokens": 0.2}, ("capacity", "scheduling")),
        ({"tokens": 0.45, "kv": 0.35, "seqs": 0.2}, ("compute", "capacity")),
        ({"unknown": 0.9, "tokens": 0.1}, ("compute", "capacity")),
        ({"unknown": 1.0}, ("capacity", "scheduling")),
    ],
)
def test_without_a_majority_it_stays_between(
    shares: dict[str, float], between: tuple[str, ...]
) -> None:
    decision = admission_decision(admission(**shares))
    assert (decision.bottleneck, decision.between) == ("undetermined", between)


def test_a_queue_that_nothing_explains() -> None:
    decision = admission_decision(None)
    assert (decision.bottleneck, decision.between) == ("undetermined", ("capacity", "scheduling"))
