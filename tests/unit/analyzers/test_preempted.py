"""Preemptions that events tell of: several at once, and sums that come one in fifty."""

from __future__ import annotations

from capture_builders import event

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.preempted import is_least, preempted
from stallscope.profiler.capture import Capture, EngineSample, Event


def total(at_ms: float, number: int, engine: str = "0") -> Event:
    return event("preempt", at_ms, engine=engine, total=number)


def test_several_put_back_at_once_count_each() -> None:
    rows = (event("preempt", 1, engine="0", count=2), event("preempt", 2), event("oom", 3))
    assert preempted(rows) == 2 + 1
    assert not is_least(rows)


def test_a_sum_counts_by_its_rise() -> None:
    """vLLM 0 logs the 1st, the 51st and the 101st; a log that begins later holds 51 to 101."""
    assert preempted((total(1, 1), total(2, 51), total(3, 101))) == 101
    assert preempted((total(2, 51), total(3, 101))) == 51
    assert is_least((total(1, 1),))


def test_a_sum_that_falls_is_a_new_servers() -> None:
    assert preempted((total(1, 1), total(2, 51), total(3, 1), total(4, 51))) == 51 + 51


def test_engines_have_sums_of_their_own() -> None:
    assert preempted((total(1, 1), total(2, 1, "1"), total(3, 51), total(4, 51, "1"))) == 102


def test_damage_counts_as_the_one_that_the_event_is() -> None:
    for wrong in (-3, 0, "51", True, None, 2.5):
        assert preempted((event("preempt", 1, total=wrong), event("preempt", 2, count=wrong))) == 2


def test_a_sum_is_told_as_the_least() -> None:
    samples = [
        EngineSample(t * 1_000_000_000, "0", name, value)
        for t in (0, 10)
        for name, value in (("running", 8.0), ("waiting", 4.0), ("kv_used_fraction", 0.99))
    ]
    sums = (total(1000, 1), total(9000, 51))
    found = diagnose(Capture(engine_samples=tuple(samples), events=sums))
    (told,) = [m for m in found.measures if m.name == "preemptions"]
    assert (told.value, told.provenance, told.side) == (51, "bound", "lower")
