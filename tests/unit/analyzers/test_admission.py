"""Which limit kept the queue out: by the engine's word, by its gauges, by sampled gauges."""

from __future__ import annotations

import pytest
from capture_builders import MS, decodes, gauges, request, step

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.judge import admission_decision, is_roomy
from stallscope.analyzers.load.admission import limit_of_step, observe_admission
from stallscope.analyzers.load.queue_limits import Admission
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.spec import Subject

LIMITS = Subject(max_num_seqs=4, max_num_batched_tokens=100)
FREE = {"kv_used_bytes": 100, "kv_total_bytes": 1000}


def ms(end: float) -> Span:
    return Span(0, round(end * MS))


@pytest.mark.parametrize("word", ["kv", "seqs", "tokens"])
def test_the_engines_own_word_comes_first(word: str) -> None:
    at_every_cap = step(0, 0, 1, running=4, kv_used_bytes=1000, kv_total_bytes=1000)
    blocked = at_every_cap._replace(waiting=1, blocked_by=word)
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


@pytest.mark.parametrize("missing", ["max_num_seqs", "kv_total_bytes"])
def test_a_step_without_tokens_under_unknown_caps_is_not_stalled(missing: str) -> None:
    subject = LIMITS if missing == "kv_total_bytes" else Subject()
    pool = {} if missing == "kv_total_bytes" else FREE
    empty = step(0, 0, 1, phase="other", waiting=1, running=2, **pool)
    assert limit_of_step(empty, subject, None) == "unknown"
    assert limit_of_step(empty._replace(**FREE), LIMITS, None) == "stalled"


def chunked(subject: Subject, *tokens: int) -> Admission | None:
    """Steps of 10 ms with so many prompt tokens each, a queue behind them and KV to spare."""
    facts = {"waiting": 3, "running": 2, **FREE}
    steps = tuple(
        step(i, 10 * i, 10, phase="prefill", prefill_tokens=n, **facts)
        for i, n in enumerate(tokens)
    )
    return observe_admission(Capture(subject=subject, steps=steps), ms(10 * len(tokens)), None)


def test_steady_prompts_in_steps_under_every_cap_are_the_limit() -> None:
    """Nobody told the token budget; each step takes the same 64 tokens of the prompts."""
    capped = Subject(max_num_seqs=4)
    steady = chunked(capped, *(64,) * 12)
    assert steady is not None
    assert (steady.shares, steady.provenance) == ({"prefill": 1.0}, "derived")
    bursts = chunked(capped, *(64, 0, 0, 0, 0, 0) * 2)
    assert bursts is not None
    assert bursts.shares == pytest.approx({"unknown": 2 / 12, "stalled": 10 / 12})
    uncapped = chunked(Subject(), *(64,) * 12)  # the sequence cap may be what holds them
    assert uncapped is not None
    assert uncapped.shares == {"unknown": 1.0}


def test_the_actual_head_decides_whether_kv_is_short() -> None:
    """100 of 1000 bytes are free at 10 bytes a token; the head's 16 tokens do not fit.

    A prompt of one token came and went before: it needs nothing any more.
    """
    pool = {"kv_used_bytes": 900, "kv_total_bytes": 1000}
    steps = tuple(step(i, i, 1, waiting=1, running=2, **pool) for i in range(4, 8))
    rows = (
        request(0, 0, 0, 1, 2, input_tokens=1),
        request(1, 3, 9, 10, 11, input_tokens=16),
        request(2, 3.5, 9, 10, 11, input_tokens=1),
    )
    capture = Capture(subject=LIMITS, steps=steps, requests=rows)
    found = observe_admission(capture, ms(12), 10)
    assert found is not None
    assert found.shares == {"kv": 1.0}


def test_a_second_rank_of_the_same_engine_changes_no_share() -> None:
    words = ("kv", "kv", "seqs", None)
    one = tuple(
        step(i, i, 1, waiting=int(w is not None), running=1, blocked_by=w)
        for i, w in enumerate(words)
    )
    two = tuple(s._replace(rank=1) for s in one)
    found = observe_admission(Capture(steps=one), ms(4), None)
    assert found is not None
    assert found.share_waiting == 0.75
    assert observe_admission(Capture(steps=one + two), ms(4), None) == found


def sampled(
    count: int = 3,
    *,
    every_ms: float = 1.0,
    subject: Subject = LIMITS,
    **series: tuple[float, ...] | float,
) -> Admission | None:
    rows = {
        name: value if isinstance(value, tuple) else (float(value),) * count
        for name, value in series.items()
    }
    samples: tuple[EngineSample, ...] = gauges(every_ms, **rows)
    capture = Capture(subject=subject, engine_samples=samples)
    return observe_admission(capture, ms(every_ms * (count - 1)), None)


@pytest.mark.parametrize(
    ("series", "limit"),
    [
        ({"running": 2, "kv_used_bytes": 950, "kv_total_bytes": 1000}, "kv"),
        ({"running": 4, "kv_used_bytes": 949, "kv_total_bytes": 1000}, "seqs"),
        ({"running": 4}, "seqs"),
        ({"running": 2, "front_waiting": 3}, "front"),
        ({"running": 2, "front_waiting": 2}, "unknown"),
        # The engine's own word on most of the queue, whatever the caps say.
        ({"running": 4, "waiting_deferred": 2}, "deferred"),
        ({"running": 4, "waiting_deferred": 1}, "seqs"),
        ({"running": 2, "output_tokens_total": 7}, "unknown"),  # free KV is not known
        ({"running": 2, **FREE}, "unknown"),  # nor is progress
    ],
)
def test_by_sampled_gauges(series: dict[str, float], limit: str) -> None:
    found = sampled(waiting=2, **series)
    assert found is not None
    assert (found.shares, found.share_waiting) == ({limit: 1.0}, 1.0)
    assert found.provenance == "derived"


STILL = {"waiting": 2, "running": 2, "output_tokens_total": 7, **FREE}
UNCAPPED = Subject()


def test_counters_that_stand_still_for_25_seconds_are_a_stall() -> None:
    for count, shares in ((26, {"stalled": 1.0}), (25, {"unknown": 1.0})):  # 25 s and 24 s
        found = sampled(count, every_ms=1000, **STILL)
        assert found is not None
        assert found.shares == shares


def test_long_steps_are_no_stall() -> None:
    """Counters that move every third second, as with steps of 3 s; then nothing for 30 s."""
    moves = tuple(float(i // 3) for i in range(60))
    long_steps = sampled(60, every_ms=1000, **{**STILL, "output_tokens_total": moves})
    assert long_steps is not None
    assert long_steps.shares == {"unknown": 1.0}
    stops = (*moves[:30], *(9.0,) * 30)  # the last move at 27 s, the last sample at 59 s
    stopped = sampled(60, every_ms=1000, **{**STILL, "output_tokens_total": stops})
    assert stopped is not None
    assert stopped.shares == pytest.approx({"unknown": 27 / 59, "stalled": 32 / 59})


def test_no_stall_where_kv_room_is_not_known() -> None:
    found = sampled(40, every_ms=1000, **{**STILL, "kv_total_bytes": 0})
    assert found is not None
    assert found.shares == {"unknown": 1.0}


def test_a_cap_holds_a_queue_and_no_tokens() -> None:
    """Known and reached, or never told: those that run would still get theirs."""
    for subject, running in ((LIMITS, 4), (UNCAPPED, 2), (UNCAPPED, 0)):
        found = sampled(40, every_ms=1000, subject=subject, **{**STILL, "running": running})
        assert found is not None
        assert found.shares == {"stalled": 1.0}


RAMP = (0, 100, 210, 300, 400)  # 100, 110, 90 and 100 tokens: spread 7 % of the mean
STEADY = {"waiting": 2, "running": 2, "input_tokens_total": RAMP, **FREE}


def test_a_flat_prompt_rate_under_known_caps_is_the_prompts_themselves() -> None:
    flat = sampled(5, **STEADY)
    assert flat is not None
    assert flat.shares == {"prefill": 1.0}
    bursts = sampled(5, **{**STEADY, "input_tokens_total": (0, 400, 400, 400, 400)})
    assert bursts is not None
    assert bursts.shares == {"unknown": 1.0}
    too_few = sampled(3, **{**STEADY, "input_tokens_total": (0, 100, 200)})
    assert too_few is not None
    assert too_few.shares == {"unknown": 1.0}


def test_a_steady_rate_alone_does_not_tell_what_sets_it() -> None:
    """Prompts under every cap, and no step budget: a host or a link may be as slow."""
    series = {
        name: tuple(map(float, value)) if isinstance(value, tuple) else (float(value),) * 5
        for name, value in STEADY.items()
    }
    verdict = diagnose(Capture(LIMITS, engine_samples=gauges(1000.0, **series))).verdict
    assert (verdict.bottleneck, verdict.limit, verdict.confidence) == ("compute", "prefill", 0.7)


@pytest.mark.parametrize(
    ("subject", "change", "limit"),
    [
        (UNCAPPED, {}, "unknown"),  # the sequence cap may be what holds them
        (LIMITS, {"kv_used_bytes": 950}, "kv"),
        (LIMITS, {"kv_total_bytes": 0}, "unknown"),  # KV may be
        (LIMITS, {"running": 4}, "seqs"),
        (Subject(max_num_seqs=99), {"running": 8}, "unknown"),  # always 8: at a cap unheard of
        (Subject(max_num_seqs=99), {"running": (8, 9, 8, 9, 8)}, "prefill"),
    ],
)
def test_a_flat_prompt_rate_does_not_answer_from_silence(
    subject: Subject, change: dict[str, float], limit: str
) -> None:
    found = sampled(5, subject=subject, **{**STEADY, **change})
    assert found is not None
    assert found.shares == {limit: 1.0}


def test_gauges_without_caps_and_a_flat_rate_are_undetermined() -> None:
    """172 wait, 128 run, prompts at a steady rate: vLLM at its cap of 128, which nobody told."""
    for pool in ({}, {"kv_used_bytes": 40, "kv_total_bytes": 100}):
        found = sampled(
            40,
            every_ms=1000,
            subject=UNCAPPED,
            waiting=172,
            running=128,
            input_tokens_total=tuple(1000.0 * i for i in range(40)),
            **pool,
        )
        assert admission_decision(found).bottleneck == "undetermined"


def two_engines(
    first: dict[str, float], second: dict[str, float], *, late_ms: float = 0
) -> tuple[EngineSample, ...]:
    def rows(name: str, values: dict[str, float], shift_ms: float) -> list[EngineSample]:
        series = {k: (float(v),) * 40 for k, v in values.items()}
        return [
            s._replace(engine=name, t_ns=s.t_ns + round(shift_ms * MS))
            for s in gauges(1000, **series)
        ]

    return (*rows("e0", first, 0), *rows("e1", second, late_ms))


FULL = {"waiting": 117, "running": 51, "kv_used_bytes": 100, "kv_total_bytes": 100}
FREE_ENGINE = {"waiting": 0, "running": 10, "kv_used_bytes": 10, "kv_total_bytes": 100}


@pytest.mark.parametrize("late_ms", [0, 500])
@pytest.mark.parametrize("is_reversed", [False, True])
def test_a_queue_at_one_engine_while_another_has_room(late_ms: float, is_reversed: bool) -> None:
    rows = two_engines(FULL, FREE_ENGINE, late_ms=late_ms)
    capture = Capture(subject=Subject(max_num_seqs=64), engine_samples=rows[:: 1 - 2 * is_reversed])
    found = observe_admission(capture, ms(39_000), None)
    assert found is not None
    assert found.shares == {"imbalance": 1.0}
    assert (found.in_flight, found.fullest) == ((168.0, 10.0), "e0")
    assert admission_decision(found).bottleneck == "scheduling"
    assert (
        "the fullest of 2 engines (e0) holds 168.0 requests" in diagnose(capture).verdict.sentence
    )


@pytest.mark.parametrize(
    "second",
    [
        {**FREE_ENGINE, "waiting": 1},  # it has a queue of its own
        {**FREE_ENGINE, "kv_used_bytes": 96},  # no KV room
        {**FREE_ENGINE, "running": 51},  # it runs as many
        {**FREE_ENGINE, "running": 90},
    ],
)
def test_engines_that_are_all_busy_keep_their_own_limits(second: dict[str, float]) -> None:
    capture = Capture(engine_samples=two_engines(FULL, second))
    found = observe_admission(capture, ms(39_000), None)
    assert found is not None
    assert "imbalance" not in found.shares
    assert found.ranked()[0][0] == "kv"


def test_each_engines_queue_weighs_by_its_length() -> None:
    """Three wait at a full pool, one at the cap."""
    first = {"waiting": 3, "running": 3, "kv_used_bytes": 100, "kv_total_bytes": 100}
    second = {"waiting": 1, "running": 4, "kv_used_bytes": 10, "kv_total_bytes": 100}
    capture = Capture(subject=LIMITS, engine_samples=two_engines(first, second))
    found = observe_admission(capture, ms(39_000), None)
    assert found is not None
    assert found.shares == pytest.approx({"kv": 0.75, "seqs": 0.25})
    assert found.share_waiting == pytest.approx(1.0)


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
        ("prefill", "compute"),
        ("imbalance", "scheduling"),
        ("stalled", "scheduling"),
        ("batch", "scheduling"),
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


def test_limits_of_one_class_count_together() -> None:
    decision = admission_decision(admission(batch=0.35, kv=0.4, seqs=0.25))
    assert (decision.bottleneck, decision.limit) == ("scheduling", "batch")
    assert (decision.share, decision.next_share) == (pytest.approx(0.6), 0.4)
    assert decision.next_class == "capacity"
    alone = admission_decision(admission(batch=0.5, seqs=0.5))
    assert (alone.share, alone.next_class) == (1.0, None)


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


@pytest.mark.parametrize(
    ("peak", "between"),
    [(0.79, ("scheduling", "compute")), (0.80, ("capacity", "scheduling"))],
)
def test_a_pool_with_room_is_no_candidate(peak: float, between: tuple[str, ...]) -> None:
    """Twelve run or thirteen while eight wait, and no cap is known: what holds them is not."""
    count = 12
    samples = gauges(
        1000.0,
        running=tuple(12.0 + i % 2 for i in range(count)),
        waiting=(8.0,) * count,
        kv_used_fraction=(peak,) * count,
    )
    capture = Capture(engine_samples=samples)
    assert is_roomy(capture, Span(0, 11_000 * MS)) == (peak < 0.80)
    assert diagnose(capture).verdict.between == between


def test_a_pool_that_says_nothing_may_be_full() -> None:
    samples = gauges(1000.0, running=(12.0, 13.0), waiting=(8.0, 8.0))
    assert not is_roomy(Capture(engine_samples=samples), Span(0, 1000 * MS))
