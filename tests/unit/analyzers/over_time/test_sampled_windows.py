"""Windows over samples: many steps and many samples in each, and what changes told as changing."""

from __future__ import annotations

import pytest
from capture_builders import MS, gauges

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.sampled_steps import sample_interval_s, sampled_step_s
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.over_time.answers import stretches
from stallscope.analyzers.over_time.windows import MAX_WINDOWS, split
from stallscope.analyzers.over_time.words import changes_text
from stallscope.analyzers.result import Window
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.spec import Subject

S = 1000 * MS


def served(seconds: int, tokens_per_s: float) -> tuple[EngineSample, ...]:
    """Ten requests run, one sample a second."""
    times = range(seconds + 1)
    return gauges(
        1000.0,
        running=(10,) * len(times),
        waiting=(0,) * len(times),
        output_tokens_total=tuple(tokens_per_s * t for t in times),
    )


def test_a_step_is_what_a_running_request_waits_for_its_token() -> None:
    """Ten run for 30 s and make 1,500 tokens: 300 s of running, 0.2 s for each token."""
    assert sampled_step_s(served(30, 50), Span(0, 30 * S)) == pytest.approx(0.2)
    assert sampled_step_s(served(30, 0), Span(0, 30 * S)) is None
    assert sampled_step_s((), Span(0, S)) is None
    # A counter that was set back in one interval counts for the other 29 alone.
    back = tuple(
        s._replace(value=s.value - 400) if s.name == "output_tokens_total" and s.t_ns > 9 * S else s
        for s in served(30, 50)
    )
    assert sampled_step_s(back, Span(0, 30 * S)) == pytest.approx(0.2)


def test_the_interval_is_an_engines_own() -> None:
    one = served(9, 1)
    two = tuple(s._replace(engine="other", t_ns=s.t_ns + S // 2) for s in one)
    assert sample_interval_s(one + two) == pytest.approx(1.0)
    assert sample_interval_s(one[:1]) is None


@pytest.mark.parametrize(
    ("seconds", "tokens_per_s", "count"),
    [
        (9, 1000.0, 1),
        (10, 1000.0, 2),  # five samples, and a thousand steps
        (200, 1000.0, MAX_WINDOWS),
        (30, 50.0, 6),  # 20 steps take 4 s: five samples take more
        (30, 20.0, 3),  # 20 steps of half a second take 10 s
        (30, 1.0, 1),  # steps of ten seconds
        (30, 0.0, 6),  # no token tells how long a step is
    ],
)
def test_a_window_holds_many_samples_and_many_steps(
    seconds: int, tokens_per_s: float, count: int
) -> None:
    assert len(split(Span(0, seconds * S), (), served(seconds, tokens_per_s))) == count


def window(at: float, to: float, limit: str | None = None, **facts: str) -> Window:
    load = "overloaded" if limit else "served"
    kinds = {"kv": "capacity", "seqs": "scheduling", "prefill": "compute", None: "undetermined"}
    return Window(at, to, facts.get("bottleneck", kinds[limit]), facts.get("load", load), limit)


def said(rows: list[Window]) -> str | None:
    return changes_text(stretches(rows))


def test_what_changes_is_told_in_order() -> None:
    rows = [window(0, 5, "prefill"), window(5, 10, "prefill"), window(10, 15, "kv")]
    assert [(w.from_s, w.to_s, w.limit) for w in stretches(rows)] == [
        (0, 10, "prefill"),
        (10, 15, "kv"),
    ]
    assert said(rows) == (
        "Over time: first prompts queue behind prompts (0 to 10 s), "
        "then the KV cache is full (10 to 15 s)."
    )
    idle = window(15, 20, bottleneck="none", load="idle")
    told = said([*rows, idle, window(20, 25), window(25, 30, bottleneck="bandwidth")])
    assert told is not None
    assert "then nothing is asked for (15 to 20 s), then nothing queues (20 to 25 s)" not in told
    assert told.startswith("It changes 4 times: prompts queue behind prompts 33 % of the time, ")


def test_a_brief_stretch_is_no_change() -> None:
    """One of twelve windows is 8 % of the run."""
    rows = [window(i, i + 1, "seqs") for i in range(12)]
    rows[6] = window(6, 7)
    assert said(rows) is None
    assert said([window(0, 1), *rows[1:]]) is None
    two = [*rows[:6], window(6, 7), window(7, 8), *rows[8:]]
    assert said(two) == (
        "Over time: first the sequence cap holds the queue (0 to 6 s), then nothing queues "
        "(6 to 8 s), then the sequence cap holds the queue (8 to 12 s)."
    )


def test_a_queue_under_no_limit_that_was_seen_tells_nothing() -> None:
    blind = window(5, 10, load="overloaded")
    assert said([window(0, 5, "kv"), blind, window(10, 15, "kv")]) is None
    told = said([window(0, 5, "kv"), blind, window(10, 15, "seqs")])
    assert told is not None
    # The chart shows the five seconds in between, so the sentence does not jump over them.
    assert told == (
        "Over time: first the KV cache is full (0 to 5 s), then requests queue under no limit that "
        "was seen (5 to 10 s), then the sequence cap holds the queue (10 to 15 s)."
    )
    assert said([blind, blind]) is None


def test_what_comes_first_is_what_the_sentence_begins_with() -> None:
    """A queue at the start that no limit explains, then none, then a full pool."""
    queued = window(0, 15.76, load="overloaded")
    rows = [queued, window(15.76, 47.28), window(47.28, 78.8, "kv")]
    assert said(rows) == (
        "Over time: first requests queue under no limit that was seen (0 to 15.8 s), then nothing "
        "queues (15.8 to 47.3 s), then the KV cache is full (47.3 to 78.8 s)."
    )


def test_no_stretch_ends_after_the_run() -> None:
    """A run of 6.5 s: rounded to whole seconds it would have ended at 6 or at 7."""
    told = said([window(0, 5.2, "kv"), window(5.2, 6.5)])
    assert told is not None
    assert told.endswith("is full (0 to 5.2 s), then nothing queues (5.2 to 6.5 s).")
    hours = said([window(0, 7200, "kv"), window(7200, 9000.4)])
    assert hours is not None
    assert hours.endswith("then nothing queues (7,200 to 9,000 s).")


def test_without_a_limit_nothing_is_told() -> None:
    assert said([]) is None
    assert said([window(0, 5), window(5, 10, bottleneck="none", load="idle")]) is None
    assert said([window(0, 5, "kv"), window(5, 10, "kv")]) is None


def test_first_prompts_then_the_full_pool() -> None:
    """Twenty seconds: 100 tokens of prompt a second for ten, then a full pool that lets none in."""
    ramp, full = range(10), range(11)
    capture = Capture(
        engine_samples=gauges(
            1000.0,
            running=(*(i + 1 for i in ramp), *(10 for _ in full)),
            waiting=(*(30 - i for i in ramp), *(20 for _ in full)),
            kv_used_fraction=(*(0.08 * i for i in ramp), *(0.99 for _ in full)),
            input_tokens_total=(*(100 * i for i in ramp), *(1000 for _ in full)),
            output_tokens_total=tuple(100 * i for i in range(21)),
        )
    )
    found = diagnose(capture)
    # In the fifth to the tenth second running is below the 10 that it reaches.
    assert [(w.bottleneck, w.limit) for w in found.windows] == [
        ("compute", "prefill"),
        ("compute", "prefill"),
        ("capacity", "kv"),
        ("capacity", "kv"),
    ]
    assert found.verdict.sentence.endswith(
        " Over time: first prompts queue behind prompts (0 to 10 s), "
        "then the KV cache is full (10 to 20 s)."
    )


def test_one_sample_that_dips_at_turnover_changes_nothing() -> None:
    running = tuple(3 if i == 12 else 64 for i in range(31))
    capture = Capture(
        subject=Subject(max_num_seqs=64),
        engine_samples=gauges(
            1000.0,
            running=running,
            waiting=(64,) * 31,
            kv_used_fraction=(0.2,) * 31,
            output_tokens_total=tuple(640 * i for i in range(31)),
            finished_total=tuple(0 if i < 12 else 61 for i in range(31)),
        ),
    )
    found = diagnose(capture)
    assert [(w.bottleneck, w.limit) for w in found.windows] == [("scheduling", "seqs")] * 6
    assert "Over time" not in found.verdict.sentence
