"""An engine that counts nothing while requests are there."""

from __future__ import annotations

import pytest
from capture_builders import MS, gauges

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.load.standstill import standstill_share
from stallscope.profiler.capture import Capture, EngineSample

S = 1000 * MS


def frozen(seconds: int, moving: int = 0, **change: float) -> tuple[EngineSample, ...]:
    """Twelve run and none waits: 100 tokens a second for some time, and then none."""
    count = moving + seconds + 1
    made = tuple(100.0 * min(i, moving) for i in range(count))
    fixed = {"running": 12.0, "waiting": 0.0, "kv_used_fraction": 0.3, **change}
    return gauges(
        1000.0, output_tokens_total=made, **{name: (v,) * count for name, v in fixed.items()}
    )


def share(samples: tuple[EngineSample, ...]) -> float:
    return standstill_share(samples, Span(0, 1000 * S))


def test_how_long_it_must_stand() -> None:
    assert share(frozen(25)) == 1.0
    assert share(frozen(24)) == 0.0
    assert share(frozen(25, moving=25)) == pytest.approx(0.5)
    assert share(()) == 0.0


def test_an_idle_engine_stands_still_for_good_reason() -> None:
    assert share(frozen(60, running=0.0)) == 0.0
    assert diagnose(Capture(engine_samples=frozen(60, running=0.0))).verdict.load == "idle"


def test_a_long_prompt_is_no_standstill() -> None:
    """It runs alone, or fills the pool chunk by chunk, and is counted at its end."""
    assert share(frozen(60, running=1.0)) == 0.0
    fills = tuple(
        s._replace(value=s.t_ns / S / 100) if s.name == "kv_used_fraction" else s
        for s in frozen(60)
    )
    assert share(fills) == 0.0
    assert share(tuple(s for s in frozen(60) if s.name != "kv_used_fraction")) == 0.0


def test_a_queue_that_nobody_is_taken_from() -> None:
    """None runs, six wait, and the pool is empty."""
    found = diagnose(Capture(engine_samples=frozen(30, running=0.0, waiting=6.0)))
    assert (found.verdict.bottleneck, found.verdict.limit) == ("scheduling", "stalled")


def test_what_counts_nothing_ever_is_not_said_to_stand() -> None:
    silent = tuple(s for s in frozen(60) if s.name != "output_tokens_total")
    assert share(silent) == 0.0


def test_a_frozen_page_is_no_steady_load() -> None:
    found = diagnose(Capture(engine_samples=frozen(30)))
    assert (found.verdict.bottleneck, found.verdict.limit) == ("scheduling", "stalled")
    assert found.verdict.sentence == (
        "The engine stands still: no token was counted for 100 % of the time in which requests "
        "were there (12.0 on average)."
    )
    assert [(link.cause, link.effect) for link in found.verdict.chain] == [
        ("the engine makes no progress under no cap", "requests that run get no tokens")
    ]
    assert "where the engine stands still" in found.remedies[0].action
    assert found.document.differs_because == (
        "the scheduling rule is not met (queue wait share 0.000 is below 0.20), "
        "yet requests that were let in get hardly a token, or none"
    )


def test_half_of_the_time_decides() -> None:
    """Thirty of sixty seconds; of sixty-one they are less than half."""
    assert diagnose(Capture(engine_samples=frozen(30, moving=30))).verdict.limit == "stalled"
    assert diagnose(Capture(engine_samples=frozen(30, moving=31))).verdict.limit is None


def test_with_a_queue_it_is_the_queues_limit() -> None:
    found = diagnose(Capture(engine_samples=frozen(30, waiting=6.0)))
    assert (found.verdict.bottleneck, found.verdict.limit) == ("scheduling", "stalled")
    assert found.verdict.sentence.startswith("The engine makes no progress with KV free: 6.0 of 18")


def test_counters_that_moved_each_second_need_not_rest_long() -> None:
    """Ten times the usual second; eight seconds at least; never more than twenty-five."""
    assert share(frozen(10, moving=10)) == pytest.approx(0.5)
    assert share(frozen(9, moving=10)) == 0.0
    fast = tuple(s._replace(t_ns=s.t_ns // 2) for s in frozen(16, moving=10))
    assert share(fast) == pytest.approx(16 / 26)  # 8 s of 13 s, by half seconds
    assert share(tuple(s for s in fast if s.t_ns < 12.8 * S)) == 0.0


def test_four_moves_tell_no_usual_interval() -> None:
    assert share(frozen(20, moving=4)) == 0.0
    assert share(frozen(20, moving=6)) == pytest.approx(20 / 26)


def test_a_hang_after_a_while_of_work_is_seen() -> None:
    found = diagnose(Capture(engine_samples=frozen(18, moving=12)))
    assert (found.verdict.bottleneck, found.verdict.limit) == ("scheduling", "stalled")


def test_a_full_pool_whose_requests_get_nothing_is_no_lack_of_room() -> None:
    found = diagnose(Capture(engine_samples=frozen(30, waiting=9.0, kv_used_fraction=1.0)))
    assert (found.verdict.bottleneck, found.verdict.limit) == ("scheduling", "stalled")
