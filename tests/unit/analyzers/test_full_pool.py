"""A full pool with preemptions, seen without the gauge of running requests."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.full_pool import decide_by_full_pool
from stallscope.profiler.capture import Capture, EngineSample

S = 1_000_000_000


def watched(
    *, used: float = 0.97, short: int = 0, rise: float = 2.0, seconds: int = 20, **more: float
) -> Capture:
    """A reading a second; `short` of them show a pool that has room."""
    samples = []
    for t in range(seconds + 1):
        values = {
            "waiting": 20.0 + t,
            "kv_used_fraction": 0.5 if t < short else used,
            "preemptions_total": rise * t,
            **more,
        }
        samples += [EngineSample(t * S, "0", name, value) for name, value in values.items()]
    return Capture(engine_samples=tuple(samples))


def test_it_is_capacity_and_less_sure_than_with_the_gauge() -> None:
    verdict = diagnose(watched()).verdict
    assert (verdict.bottleneck, verdict.confidence) == ("capacity", 0.8)
    # 20 s at 2 a second.
    said = "The KV cache is full: requests queue, and running requests were preempted 40 times."
    assert verdict.sentence == said


@pytest.mark.parametrize(
    ("capture", "fires"),
    [
        (watched(used=0.95), True),
        (watched(used=0.949), False),
        (watched(short=2), True),  # 19 of 21 readings: 0.905
        (watched(short=3), False),  # 18 of 21: 0.857
        (watched(rise=0.05), True),  # one in 20 s
        (watched(rise=0.04), False),  # 0.8 of one
        (watched(seconds=10), True),
        (watched(seconds=9), False),
        (watched(waiting=0.0), False),
        (watched(running=64.0), False),  # then the queue is judged by it
        (Capture(), False),
    ],
)
def test_it_fires_just_past_each_line(capture: Capture, fires: bool) -> None:
    found = decide_by_full_pool(capture)
    assert (found is not None) is fires


def test_without_a_counter_of_preemptions_it_abstains() -> None:
    samples = watched().engine_samples
    kept = tuple(s for s in samples if s.name != "preemptions_total")
    assert decide_by_full_pool(Capture(engine_samples=kept)) is None
