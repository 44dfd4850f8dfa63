"""Decode's share from both sides; mixed steps split by the model, between their bounds."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from step_rows import MS, TINY, decode, prefill, request, step

from stallscope.analyzers.cost.operators import StepShape, prefill_shape
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.step.budget import cost_steps
from stallscope.analyzers.step.decode_share import engine_measures, from_engine, from_requests
from stallscope.profiler.capture import Capture, Step

SLOW = CostModel(TINY, "fp16", "fp16", Machine(1e9, 1e8, "datasheet"))


def test_share_from_requests() -> None:
    # Prefill 20 + 80 ms, decode 180 + 720 ms: 900 of 1000. The wait before admission is neither.
    rows = (
        request(1, admitted_ns=100 * MS, first_token_ns=120 * MS, end_ns=300 * MS),
        request(2, admitted_ns=0, first_token_ns=80 * MS, end_ns=800 * MS),
        request(3, admitted_ns=0, first_token_ns=500 * MS),  # never ended: not counted
    )
    measure = from_requests(Capture(requests=rows), ())
    assert measure is not None
    assert measure.value == pytest.approx(0.9)
    assert (measure.name, measure.provenance) == ("decode_share_requests", "measured")


def test_share_from_requests_by_steps_where_no_request_was_recorded() -> None:
    # 10 ms with one prefilling; 30 ms with two decoding; 20 ms with one and one: 80 of 110.
    mixed = step(40, 60, phase="mixed", decode_requests=1, prefill_requests=1, prefill_tokens=4)
    costs = cost_steps([prefill(0, 10, 8), step(10, 40, decode_requests=2), mixed], None)
    measure = from_requests(Capture(), costs)
    assert measure is not None
    assert measure.value == pytest.approx(80 / 110)
    assert measure.provenance == "derived"
    assert from_requests(Capture(), ()) is None


def test_engine_share_without_mixed_steps_is_exact() -> None:
    share = from_engine(cost_steps([prefill(0, 10, 8), decode(10, 100, 9)], SLOW), SLOW)
    assert share is not None
    assert share.value == pytest.approx(0.9)
    assert share.low == share.high == share.value
    (measure,) = engine_measures(share)
    assert (measure.name, measure.provenance) == ("decode_share_engine", "measured")
    assert from_engine(cost_steps([step(0, 1, phase="other")], SLOW), SLOW) is None


def mixed_step(
    prompts: list[tuple[int, int]],
    contexts: list[int],
    end_ms: float = 10,
    window: int | None = None,
) -> Step:
    """A step of chunks (tokens, cached before) and of decodes over the given contexts."""
    shapes = [prefill_shape(tokens, cached=cached, window=window) for tokens, cached in prompts]
    return step(
        0,
        end_ms,
        phase="mixed",
        prefill_requests=len(prompts),
        prefill_tokens=sum(tokens for tokens, _ in prompts),
        decode_requests=len(contexts),
        context_tokens=sum(contexts) + sum(s.kv_read_tokens for s in shapes),
        attention_pairs=sum(contexts) + sum(s.attention_pairs for s in shapes),
        logit_rows=len(contexts) + len(prompts),
    )


def test_mixed_steps_lie_between_their_bounds() -> None:
    rows = [decode(0, 30, 9), prefill(30, 50, 8), mixed_step([(8, 0)], [9, 9], end_ms=50)]
    share = from_engine(cost_steps(rows, SLOW), SLOW)
    assert share is not None
    # 30 ms of decode and 20 of prefill for sure; 50 mixed.
    assert (share.low, share.high) == (pytest.approx(0.3), pytest.approx(0.8))
    assert share.low < share.value < share.high
    value, low, high = engine_measures(share)
    assert (value.provenance, low.side, high.side) == ("estimated", "lower", "upper")
    assert value.source.endswith("split by the cost model")


def test_without_a_model_a_mixed_step_is_split_by_requests() -> None:
    share = from_engine(cost_steps([mixed_step([(8, 0)], [9, 9, 9])], None), None)
    assert share is not None
    assert share.value == pytest.approx(0.75)
    low, high = engine_measures(share)  # how a row of either kind takes time, nobody knows
    assert [(low.value, low.side), (high.value, high.side)] == [(0.0, "lower"), (1.0, "upper")]


def true_split(
    prompts: list[tuple[int, int]], contexts: list[int], window: int | None = None
) -> float:
    """The same split from what a capture does not hold: each chunk and each context apart."""
    keys = sum(contexts)
    alone = SLOW.step_time(StepShape(len(contexts), len(contexts), keys, keys)).floor
    shapes = [prefill_shape(tokens, cached=cached, window=window) for tokens, cached in prompts]
    rest = StepShape(
        *(sum(getattr(s, field) for s in shapes) for field in StepShape.__dataclass_fields__)
    )
    return alone / (alone + SLOW.step_time(rest).floor)


@pytest.mark.parametrize(
    ("prompts", "contexts"),
    [
        ([(16, 0)], [40]),
        ([(16, 100)], [5, 60, 200]),  # a later chunk
        ([(12, 0), (12, 30)], [77]),  # two chunks of one length
        ([(1, 0)], [1]),  # one token each over one key: alike in every way
    ],
)
def test_the_split_is_exact_for_chunks_of_one_length(
    prompts: list[tuple[int, int]], contexts: list[int]
) -> None:
    share = from_engine(cost_steps([mixed_step(prompts, contexts)], SLOW), SLOW)
    assert share is not None
    assert share.value == pytest.approx(true_split(prompts, contexts))


def test_the_split_of_unequal_chunks_is_near() -> None:
    rng = random.Random(11)
    for _ in range(300):
        prompts = [(rng.randint(1, 60), rng.randint(0, 90)) for _ in range(rng.randint(1, 4))]
        contexts = [rng.randint(1, 300) for _ in range(rng.randint(1, 8))]
        share = from_engine(cost_steps([mixed_step(prompts, contexts)], SLOW), SLOW)
        assert share is not None
        assert share.value == pytest.approx(true_split(prompts, contexts), abs=0.1)


@pytest.mark.parametrize(
    ("prompts", "contexts"),
    [
        ([(16, 0)], [20]),  # the window of 20 is not reached
        ([(16, 10)], [20, 5]),  # it fills within the chunk
        ([(16, 300)], [20, 20, 7]),  # it is full
        ([(12, 300), (12, 300)], [20]),
    ],
)
def test_the_split_is_exact_within_a_window(
    prompts: list[tuple[int, int]], contexts: list[int]
) -> None:
    windowed = replace(SLOW, spec=replace(TINY, sliding_window=20))
    step = mixed_step(prompts, contexts, window=20)
    share = from_engine(cost_steps([step], windowed), windowed)
    assert share is not None
    assert share.value == pytest.approx(true_split(prompts, contexts, window=20))
