"""Preemption by the gauges, where the engine's counter stands still."""

from __future__ import annotations

import pytest
from capture_builders import gauges

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.preemption import count_preemptions, preempts
from stallscope.analyzers.load.put_back import put_back
from stallscope.profiler.capture import Capture, EngineSample

Series = tuple[float, ...]
# Ten requests, nobody comes: 10 run until the pool is full, then 8, 8 and 5, and one of them ended.
WAVE: dict[str, Series] = {
    "running": (10, 10, 8, 8, 4),
    "waiting": (0, 0, 2, 2, 5),
    "kv_used_fraction": (0.90, 0.99, 0.96, 0.99, 0.98),
    "finished_total": (40, 40, 40, 40, 41),
    "preemptions_total": (7, 7, 7, 7, 7),
}


def samples(**changed: Series) -> tuple[EngineSample, ...]:
    return gauges(1000.0, **{**WAVE, **changed})


def without(name: str) -> tuple[EngineSample, ...]:
    return gauges(1000.0, **{n: v for n, v in WAVE.items() if n != name})


def numbers(found: tuple[EngineSample, ...]) -> list[float]:
    return [f.requests for f in put_back(found)]


def test_those_that_ended_were_not_put_back() -> None:
    """Running falls by 2, and then by 4 of which one ended: 2 and 3 went back."""
    falls = put_back(samples())
    assert [f.requests for f in falls] == [2, 3]
    assert [f.counted for f in falls] == [0, 0]
    assert all(f.is_least for f in falls)


def test_those_that_came_were_not_put_back() -> None:
    """Of the last three in the queue two arrived."""
    assert numbers(samples(arrived_total=(50, 50, 50, 50, 52))) == [2, 1]


@pytest.mark.parametrize(
    "changed",
    [
        {"kv_used_fraction": (0.90, 0.969, 0.96, 0.969, 0.96)},  # room was left
        {"finished_total": (40, 40, 42, 42, 46)},  # all that left had ended
        {"waiting": (2, 2, 2, 1, 1)},  # nobody came back into the queue
        {"running": (10, 10, 10, 10, 9), "waiting": (0, 0, 0, 0, 1), "finished_total": (40,) * 5},
    ],
)
def test_something_else_explains_it(changed: dict[str, Series]) -> None:
    assert numbers(samples(**changed)) == []


@pytest.mark.parametrize("name", ["finished_total", "preemptions_total"])
def test_a_counter_that_falls_is_no_preemption(name: str) -> None:
    """An engine started again, or samples out of order: 8 became 4 when the counter fell."""
    assert numbers(samples(**{name: (9, 9, 9, 9, 0)})) == [2]


def test_two_at_once_are_enough() -> None:
    two = {"running": (10, 10, 10, 10, 8), "waiting": (0, 0, 0, 0, 2)}
    assert numbers(samples(**two, finished_total=(40,) * 5)) == [2]


FALLS: dict[str, Series] = {
    "running": (64, 60, 55, 46),
    "waiting": (0, 4, 9, 18),
    "kv_used_fraction": (0.97, 0.99, 0.995, 1.0),
    "input_tokens_total": (500, 500, 500, 500),
}


def test_where_ends_are_not_counted_it_falls_again_and_again() -> None:
    assert numbers(gauges(1000.0, **FALLS)) == [4, 5, 9]
    assert not any(f.is_least for f in put_back(gauges(1000.0, **FALLS)))
    pauses = {n: (*v[:2], v[1], *v[2:]) for n, v in FALLS.items()}
    assert numbers(gauges(1000.0, **pauses)) == [4, 5, 9]


@pytest.mark.parametrize(
    "changed",
    [
        {n: v[:2] for n, v in FALLS.items()},  # one end and one arrival look alike
        {"input_tokens_total": (500, 590, 680, 770)},  # prompts came in: these are turnover
        {"kv_used_fraction": (0.96, 0.96, 0.96, 0.96)},
        {"waiting": (0, 12, 27, 54)},  # more came than went back
    ],
)
def test_without_ends_more_is_asked_for(changed: dict[str, Series]) -> None:
    assert numbers(gauges(1000.0, **{**FALLS, **changed})) == []


def test_a_blind_capture_says_nothing() -> None:
    assert put_back(()) == put_back(without("kv_used_fraction")) == ()
    assert put_back(without("waiting")) == ()


def test_each_engine_has_a_queue_of_its_own() -> None:
    """One engine's queue takes what another's running lose: nobody was put back."""
    first = {n: (v[0],) * 5 if n == "waiting" else v for n, v in WAVE.items()}
    second = {**{n: (v[0],) * 5 for n, v in WAVE.items()}, "waiting": WAVE["waiting"]}
    rows = [s._replace(engine="0") for s in gauges(1000.0, **first)]
    rows += [s._replace(engine="1") for s in gauges(1000.0, **second)]
    assert put_back(rows) == ()
    both = [s._replace(engine=e) for e in "01" for s in samples()]
    assert [(f.engine, f.requests) for f in put_back(both)] == [
        ("0", 2),
        ("0", 3),
        ("1", 2),
        ("1", 3),
    ]


def test_the_counter_that_stands_still_is_not_believed() -> None:
    capture = Capture(engine_samples=samples())
    assert (count_preemptions(capture), preempts(capture)) == (0, True)
    found = diagnose(capture)
    values = {m.name: (m.value, m.provenance, m.side) for m in found.measures}
    assert values["preemptions"] == (0, "measured", None)
    assert values["preemptions_inferred"] == (5, "bound", "lower")
    assert found.notes == (
        "Running requests were preempted, by the gauges: with the KV pool full, running fell from "
        "10 to 4, waiting rose from 0 to 5, and fewer ended; the engine's own counter stood still.",
    )
    counted = Capture(engine_samples=samples(preemptions_total=(7, 7, 8, 8, 9)))
    assert count_preemptions(counted) == 2
    assert diagnose(counted).notes[0].endswith("; the engine's own counter rose by 2 meanwhile.")


def test_a_wave_that_fills_the_pool_is_a_capacity_problem() -> None:
    """In flight stay 10; four seconds wait for nothing, then 1, 2, 3 … go back."""
    running = (10,) * 8 + (9, 9, 8, 8, 7, 7, 6, 6)
    capture = Capture(
        engine_samples=gauges(
            1000.0,
            running=running,
            waiting=tuple(10 - r for r in running),
            kv_used_fraction=(0.9,) * 7 + (0.99,) * 9,
            finished_total=(40,) * 16,
            preemptions_total=(7,) * 16,
        )
    )
    found = diagnose(capture)
    verdict = found.verdict
    assert (verdict.bottleneck, verdict.load) == ("capacity", "overloaded")
    assert verdict.limits.tpot == "capacity"
    assert "and at least 4 running requests were preempted" in verdict.sentence
    assert [(link.cause, link.effect) for link in verdict.chain][:2] == [
        ("KV pool full", "preemption"),
        ("preemption", "requests queue for KV room"),
    ]
    assert verdict.chain[0].evidence == ("kv_used_peak", "preemptions_inferred")
    cited = {name for remedy in found.remedies for name in remedy.evidence}
    assert "preemptions_inferred" in cited
    assert "preemptions" not in cited  # the engine's counter stood still


@pytest.mark.parametrize(("went", "load"), [(5, "overloaded"), (4, "served")])
def test_how_many_of_those_in_flight_must_go_back(went: int, load: str) -> None:
    """A hundred in flight: one in twenty went back at once, and stayed in the queue."""
    capture = Capture(
        engine_samples=gauges(
            1000.0,
            running=(100,) + (100 - went,) * 20,
            waiting=(0,) + (went,) * 20,
            kv_used_fraction=(0.99,) * 21,
            finished_total=(40,) * 21,
        )
    )
    verdict = diagnose(capture).verdict
    assert verdict.load == load
    assert verdict.bottleneck == ("capacity" if load == "overloaded" else "undetermined")


def test_a_queue_that_stood_but_briefly_is_none() -> None:
    """Five of a hundred wait for nine of twenty seconds, and then run again."""
    running = (100,) + (95,) * 9 + (100,) * 11
    capture = Capture(
        engine_samples=gauges(
            1000.0,
            running=running,
            waiting=tuple(100 - r for r in running),
            kv_used_fraction=(0.99,) * 21,
            finished_total=(40,) * 21,
        )
    )
    assert diagnose(capture).verdict.load == "served"
