"""The verdict in one sentence: every class has one, whole, with its numbers."""

from __future__ import annotations

import pytest

from stallscope.analyzers.classes import CLASSES
from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.load.demand import UNKNOWN_DEMAND, Demand
from stallscope.analyzers.load.preemption import Preemption
from stallscope.analyzers.load.queue_limits import Admission
from stallscope.analyzers.measures import measure
from stallscope.analyzers.queue_words import gain_text
from stallscope.analyzers.result import Gain
from stallscope.analyzers.sentences import verdict_sentence
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.replay import WhatIf
from stallscope.analyzers.words import both, counted, percent
from stallscope.profiler.evidence import BoundSide

QUEUE = Demand(0.375, 0.0, 8.0, 3.0, False, "measured", "a test")
QUEUE_TEXT = "3.0 of 8.0 requests in flight wait on average (38 % of their time)"


def say(
    decision: Decision,
    *,
    queues: bool = False,
    demand: Demand = UNKNOWN_DEMAND,
    preemptions: int | None = None,
    side: BoundSide | None = None,
    kv_peak: float | None = None,
    preemption: Preemption | None = None,
    engines: tuple[float, ...] = (),
    gain: float | None = None,
    error: float = 0.12,
    next_limit: str | None = None,
) -> str:
    admission = Admission({"kv": 1.0}, 1.0, "measured", "a test", engines) if queues else None
    load = "overloaded" if queues else "served"
    judged = Judgement(load, decision, demand, admission, (), preemption)
    found = {}
    if kv_peak is not None:
        found["kv_used_peak"] = measure("kv_used_peak", kv_peak, "measured", "a test")
    how = "bound" if side else "measured"
    if preemptions is not None:
        found["preemptions"] = measure("preemptions", preemptions, how, "a test", side=side)
    whatif = None
    if gain is not None:
        whatif = WhatIf(Gain("output_tokens_per_s", "tokens/s", 100, gain, error), next_limit)
    return verdict_sentence(judged, found, whatif, trace="trace it", t=Thresholds())


def decision(bottleneck: str, reason: str, **facts: object) -> Decision:
    row = {"share": 0.5, "next_share": 0.2, "next_class": None, "unexplained": 0.1, "quality": 1.0}
    return Decision(bottleneck, reason=reason, **{**row, **facts})  # type: ignore[arg-type]


KV = decision("capacity", "held", limit="kv")
SEQS = decision("scheduling", "held", limit="seqs")


@pytest.mark.parametrize("bottleneck", CLASSES)
def test_every_class_has_a_sentence(bottleneck: str) -> None:
    sentence = say(decision(bottleneck, "a reason"))
    assert "a reason" in sentence
    assert sentence[0].isupper()
    assert sentence.endswith(".")


def test_served() -> None:
    reason = "reading weights and KV takes 50 % of step time"
    sentence = say(decision("bandwidth", reason, next_class="host"))
    assert sentence == f"Memory bandwidth limits the step: {reason}; next is host at 20 %."


@pytest.mark.parametrize(
    ("preemptions", "side", "end"),
    [
        (None, None, ""),
        (0, None, ""),
        (1, None, ", and running requests were preempted once"),
        (14, None, ", and running requests were preempted 14 times"),
        (1, "lower", ", and running requests were preempted at least once"),
        (50, "lower", ", and running requests were preempted at least 50 times"),
    ],
)
def test_capacity(preemptions: int | None, side: BoundSide | None, end: str) -> None:
    sentence = say(KV, queues=True, demand=QUEUE, preemptions=preemptions, side=side)
    assert sentence == f"The KV cache is full: {QUEUE_TEXT}{end}."


def test_what_lifting_the_limit_buys() -> None:
    head = f"Requests queue at the sequence cap: {QUEUE_TEXT}"
    bought = say(SEQS, queues=True, demand=QUEUE, gain=180, next_limit="capacity")
    assert bought == (
        f"{head}; raising the cap would buy +80 % tokens/s (± 12 %), then capacity binds."
    )
    just = say(SEQS, queues=True, demand=QUEUE, gain=110.1, error=0.09)
    assert just == f"{head}; raising the cap would buy +10 % tokens/s (± 9 %)."


@pytest.mark.parametrize(
    ("gain", "error", "text"),
    [
        (144.0, 0.43, "+44 % tokens/s (± 43 %)"),
        (144.0, 0.44, "more tokens/s, by how much cannot be told"),
        (144.0, 0.51, "more tokens/s, by how much cannot be told"),
        (110.1, 0.10, "more tokens/s, by how much cannot be told"),  # both are shown as 10 %
    ],
)
def test_a_gain_within_its_error_is_no_number(gain: float, error: float, text: str) -> None:
    head = f"Requests queue at the sequence cap: {QUEUE_TEXT}; raising the cap would buy"
    said = say(SEQS, queues=True, demand=QUEUE, gain=gain, error=error, next_limit="compute")
    assert said == f"{head} {text}, then compute binds."


@pytest.mark.parametrize(
    ("gain", "error", "buys"),
    [
        (109.0, 0.08, "only about 9 %"),
        (109.0, 0.09, "at most 18 %"),
        (109.0, 0.15, "at most 24 %"),
        (100.0, 0.12, "at most 12 %"),
        (95.0, 0.12, "at most 12 %"),
        (70.0, 0.12, "nothing"),
    ],
)
def test_a_small_gain_is_said_in_the_headline(gain: float, error: float, buys: str) -> None:
    for next_limit in (None, "bandwidth", "compute"):
        sentence = say(
            SEQS, queues=True, demand=QUEUE, gain=gain, error=error, next_limit=next_limit
        )
        assert sentence.endswith(
            f", but raising the cap buys {buys}: the step itself is the limit."
        )


@pytest.mark.parametrize(("gain", "error"), [(105.0, 0.51), (109.0, 0.16), (95.0, 0.25)])
def test_a_small_gain_with_a_large_error_may_be_none_or_a_large_one(
    gain: float, error: float
) -> None:
    head = f"Requests queue at the sequence cap: {QUEUE_TEXT}"
    sentence = say(SEQS, queues=True, demand=QUEUE, gain=gain, error=error)
    assert sentence == f"{head}; what raising the cap would buy cannot be told."


def test_a_small_gain_is_not_the_steps_fault_where_another_limit_binds_next() -> None:
    full = say(SEQS, queues=True, demand=QUEUE, gain=100.0, next_limit="capacity", kv_peak=1.0)
    assert full == (
        f"Requests queue at the sequence cap: {QUEUE_TEXT}, but raising the cap buys at most "
        "12 %: capacity binds right behind it."
    )
    cap = say(KV, queues=True, demand=QUEUE, gain=100.0, next_limit="scheduling")
    assert cap.endswith("buys at most 12 %: scheduling binds right behind it.")


@pytest.mark.parametrize(
    ("peak", "room"), [(None, ""), (0.94, " while KV has room"), (0.95, ""), (1.0, "")]
)
def test_kv_has_room_only_where_it_was_seen_to_have(peak: float | None, room: str) -> None:
    sentence = say(SEQS, queues=True, demand=QUEUE, kv_peak=peak)
    assert sentence == f"Requests queue at the sequence cap{room}: {QUEUE_TEXT}."


@pytest.mark.parametrize("queues", [False, True])
def test_preemption_that_decides_is_said_with_its_cost_queue_or_not(queues: bool) -> None:
    lost = decision("capacity", "prefilling again takes 78 % of step time", limit="kv")
    found = Preemption(0.78, 0.04)
    sentence = say(lost, queues=queues, preemption=found, preemptions=100, gain=180)
    assert sentence == (
        "The KV cache is full: prefilling again takes 78 % of step time (100 preemptions); "
        "more KV room would buy +80 % tokens/s (± 12 %)."
    )


def test_uneven_engines_are_compared_with_their_mean() -> None:
    uneven = decision("scheduling", "held", limit="imbalance")
    assert say(uneven, queues=True, demand=QUEUE, engines=(168.0, 10.0)) == (
        f"Requests queue at one engine while another has room: {QUEUE_TEXT}; the fullest of 2 "
        "engines holds 168.0 requests, their mean is 89.0."
    )


@pytest.mark.parametrize(
    ("bottleneck", "limit", "start"),
    [
        ("scheduling", "stalled", "The engine makes no progress with KV free: "),
        (
            "scheduling",
            "batch",
            "Requests queue behind a static batch, which takes nobody in until its last one ends: ",
        ),
        ("compute", "tokens", "Prompts use up the token budget and the rest queue: "),
        (
            "compute",
            "prefill",
            "Prompts are prefilled at a steady rate under every cap and the rest queue: ",
        ),
        (
            "scheduling",
            "deferred",
            "The scheduler puts requests off for something other than room: ",
        ),
        ("host", "front", "Requests queue in front of the scheduler: "),
    ],
)
def test_the_other_queues(bottleneck: str, limit: str, start: str) -> None:
    sentence = say(decision(bottleneck, "held", limit=limit), queues=True, demand=QUEUE)
    assert sentence == f"{start}{QUEUE_TEXT}."


def test_undetermined_says_what_to_trace_when_much_is_unexplained() -> None:
    between = ("bandwidth", "host")
    much = say(decision("undetermined", "x", unexplained=0.25, between=between))
    assert much == (
        "Undetermined between bandwidth and host: x. To tell what the rest is, trace it."
    )
    alone = say(decision("undetermined", "x", unexplained=0.24, between=("host",)))
    assert alone == "Undetermined, perhaps host: x."
    little = say(decision("undetermined", "x", unexplained=0.24, between=between))
    assert little == "Undetermined between bandwidth and host: x."


def test_a_gain_is_said_with_its_sign_and_error() -> None:
    assert gain_text(Gain("m", "tokens/s", 200, 250, 0.1)) == "+25 % tokens/s (± 10 %)"
    assert gain_text(Gain("m", "tokens/s", 200, 150, 0.1)) == "-25 % tokens/s (± 10 %)"
    untold = "more tokens/s, by how much cannot be told"
    assert gain_text(Gain("m", "tokens/s", 200, 250, 0.3)) == untold


def test_words() -> None:
    assert [both(("a", "b", "c")[:n]) for n in range(4)] == ["", "a", "a and b", "a, b and c"]
    assert (percent(0.349), percent(1.0), percent(0.0)) == ("35 %", "100 %", "0 %")


def test_things_are_counted_in_words() -> None:
    counts = [counted(n, "launch") for n in (0, 1, 2, 1200)]
    assert counts == ["0 launches", "one launch", "2 launches", "1,200 launches"]
    assert [counted(n, "decode step") for n in (1, 3)] == ["one decode step", "3 decode steps"]
