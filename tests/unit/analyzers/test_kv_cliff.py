"""A KV pool that is full and a server that makes less than half: preemption that nobody counts."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.load.demand import UNKNOWN_DEMAND
from stallscope.analyzers.load.kv_cliff import cliff_decision, cliffs
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.sentences import verdict_sentence
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, EngineSample

S = 1_000_000_000


def served(*levels: tuple[int, int, float, float, float], counted: float | None = None) -> Capture:
    """Play levels of (samples of 10 s, running, KV use, tokens/s, prompt tokens/s)."""
    samples, made, taken, preempted, second = [], 0.0, 0.0, 0.0, 0
    for count, running, used, rate, prompts in levels:
        for _ in range(count):
            values = {
                "running": float(running),
                "waiting": 0.0,
                "kv_used_fraction": used,
                "output_tokens_total": made,
                "input_tokens_total": taken,
            }
            if counted is not None:
                values["preemptions_total"] = preempted
            samples += [EngineSample(second * S, "0", n, v) for n, v in values.items()]
            made, taken, second = made + 10 * rate, taken + 10 * prompts, second + 10
            preempted += (counted or 0.0) if used >= 0.97 else 0.0
    return Capture(engine_samples=tuple(samples), meta={"ended": {}})


ROOM = (30, 7, 0.92, 60.0, 2000.0)
FULL = (31, 8, 0.99, 18.0, 600.0)


def test_both_rates_and_what_was_lost() -> None:
    """Half of 600 s at 18 of 60 tokens/s: 0.5 · (1 − 0.3) = 35 % lost."""
    capture = served(ROOM, FULL)
    (found,) = cliffs(capture.engine_samples)
    assert (found.room_rate, found.full_rate) == (pytest.approx(60), pytest.approx(18))
    verdict = diagnose(capture).verdict
    assert verdict.bottleneck == "capacity"
    assert verdict.confidence <= 0.6
    assert "8 running the engine makes 18.0 tokens/s, with room in it and 7 running 60.0" in (
        verdict.sentence
    )
    assert diagnose(capture).remedies[0].flag["vllm"] == "--max-num-seqs 7"


@pytest.mark.parametrize(
    ("room", "full", "is_seen"),
    [
        (ROOM, (31, 8, 0.99, 30.0, 600.0), True),  # half
        (ROOM, (31, 8, 0.99, 30.1, 600.0), False),
        (ROOM, (31, 8, 0.97, 18.0, 600.0), True),
        (ROOM, (31, 8, 0.96, 18.0, 600.0), False),
        ((30, 6, 0.79, 60.0, 2000.0), FULL, True),  # 6 of 8 is three quarters
        ((30, 5, 0.65, 60.0, 2000.0), FULL, False),
        (ROOM, (31, 8, 0.99, 18.0, 2001.0), False),  # it took in more prompts instead
        ((3, 7, 0.92, 60.0, 2000.0), FULL, True),  # 30 s
        ((2, 7, 0.92, 60.0, 2000.0), FULL, False),
        (ROOM, (4, 8, 0.99, 18.0, 600.0), True),
        (ROOM, (3, 8, 0.99, 18.0, 600.0), False),  # the last sample has no length
    ],
)
def test_just_past_and_just_under(
    room: tuple[int, int, float, float, float],
    full: tuple[int, int, float, float, float],
    is_seen: bool,
) -> None:
    assert bool(cliffs(served(room, full).engine_samples)) is is_seen


def test_slow_before_it_was_full_is_something_else() -> None:
    """Two of thirty samples with room are as slow: under a tenth. Four are more."""
    slow = (7, 0.92, 18.0, 600.0)
    assert cliffs(served((28, 7, 0.92, 60.0, 2000.0), (2, *slow), FULL).engine_samples)
    assert not cliffs(served((26, 7, 0.92, 60.0, 2000.0), (4, *slow), FULL).engine_samples)


@pytest.mark.parametrize(("counted", "is_seen"), [(None, True), (1.0, True), (0.0, False)])
def test_an_engine_that_counts_its_preemptions_is_believed(
    counted: float | None, is_seen: bool
) -> None:
    assert bool(cliffs(served(ROOM, FULL, counted=counted).engine_samples)) is is_seen


def test_a_short_stretch_of_it_is_a_note() -> None:
    """60 of 660 s at 0.3 of the rate: 6 % lost, less than a queue that counts."""
    found = diagnose(served((60, 7, 0.92, 60.0, 2000.0), (7, 8, 0.99, 18.0, 600.0)))
    assert found.verdict.bottleneck == "undetermined"
    assert any("more requests at once make less" in note for note in found.notes)


def test_without_a_pool_or_tokens_nothing_is_said() -> None:
    capture = served(ROOM, FULL)
    for name in ("kv_used_fraction", "output_tokens_total", "input_tokens_total"):
        rest = tuple(s for s in capture.engine_samples if s.name != name)
        assert cliffs(rest) == ()


def test_what_would_limit_next_has_no_share_of_the_step() -> None:
    """Beside the loss stands the line that it crossed, a fifth of the time: no class's part."""
    (cliff,) = cliffs(served(ROOM, FULL).engine_samples)
    step = Decision("bandwidth", 0.7, 0.1, None, 0.2, 0.4, "a test")
    decision = cliff_decision(cliff, Span(0, 600 * S), step, Thresholds())
    judged = Judgement("served", decision, UNKNOWN_DEMAND, None, (), cliff=cliff)
    said = verdict_sentence(judged, {}, None, trace="", t=Thresholds())
    assert said.endswith("is preempted and prefilled again; next is bandwidth.")


def test_the_remedy_is_of_the_engine_that_the_verdict_names() -> None:
    """One is full for longer and loses half of that, the other more than two thirds of its time."""
    longer = served((22, 7, 0.92, 60.0, 2000.0), (40, 8, 0.99, 30.0, 600.0)).engine_samples
    worse = served(ROOM, (32, 8, 0.99, 18.0, 600.0)).engine_samples
    both = (*longer, *(s._replace(engine="1") for s in worse))
    found = diagnose(Capture(engine_samples=both, meta={"ended": {}}))
    assert "the engine makes 18.0 tokens/s" in found.verdict.sentence
    assert "the engine makes 18.0 tokens/s" in found.remedies[0].action
