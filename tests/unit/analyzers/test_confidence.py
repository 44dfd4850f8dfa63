"""Confidence: a probability that moves the right way with each piece of evidence."""

from __future__ import annotations

import dataclasses
import random

import pytest

from stallscope.analyzers.confidence import confidence, margin, stability
from stallscope.analyzers.result import Window
from stallscope.analyzers.step.limit import Decision

CLEAR = Decision("bandwidth", 0.8, 0.1, "host", 0.1, 1.0, "a test")


def window(from_s: float, to_s: float, bottleneck: str) -> Window:
    return Window(from_s, to_s, bottleneck, "served")


def test_by_hand() -> None:
    # margin 1, stability 1, unexplained 0.1: 0.35 + 0.65 · 1.0 · 0.95 = 0.9675
    assert confidence(CLEAR, ()) == 0.97
    # quality 0.4, twice half margin, half the time stable, unexplained 0.2:
    # 0.35 + 0.65 · 0.4 · 0.75 · 0.75 · 0.9 = 0.4816
    close = dataclasses.replace(CLEAR, share=0.6, next_share=0.4, unexplained=0.2, quality=0.4)
    half = (window(0, 1, "bandwidth"), window(1, 2, "host"))
    assert confidence(close, half) == 0.48


def test_margin() -> None:
    def of(share: float, after: float) -> float:
        return margin(dataclasses.replace(CLEAR, share=share, next_share=after))

    assert of(0.5, 0.5) == 0.0
    assert of(0.6, 0.4) == pytest.approx(0.5)
    assert of(0.8, 0.4) == of(0.8, 0.0) == 1.0
    assert of(0.0, 0.0) == 0.0


def test_stability_is_by_time() -> None:
    parts = (window(0, 3, "host"), window(3, 4, "bandwidth"))
    assert stability(parts, "host") == 0.75
    assert stability(parts, "compute") == 0.0
    assert stability((), "host") == 1.0


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ({"quality": 1.0}, {"quality": 0.7}),
        ({"next_share": 0.4}, {"next_share": 0.6}),
        ({"unexplained": 0.0}, {"unexplained": 0.3}),
        ({"cap": 0.99}, {"cap": 0.6}),
    ],
)
def test_each_piece_of_evidence_pulls_its_way(
    better: dict[str, float], worse: dict[str, float]
) -> None:
    up = dataclasses.replace(CLEAR, **better)  # type: ignore[arg-type]
    down = dataclasses.replace(CLEAR, **worse)  # type: ignore[arg-type]
    assert confidence(up, ()) > confidence(down, ())


def test_windows_that_disagree_lower_it() -> None:
    steady = (window(0, 1, "bandwidth"), window(1, 2, "bandwidth"))
    torn = (window(0, 1, "bandwidth"), window(1, 2, "host"))
    assert confidence(CLEAR, steady) > confidence(CLEAR, torn)


def test_undetermined_is_the_surer_the_better_the_evidence() -> None:
    poor = Decision("undetermined", 0.2, 0.1, None, 0.7, 0.4, "a test")
    good = dataclasses.replace(poor, quality=1.0)
    assert (confidence(poor, ()), confidence(good, ())) == (0.62, 0.8)


def test_monotone_and_within_bounds_wherever_evidence_lies() -> None:
    rng = random.Random(7)
    for _ in range(2000):
        decision = Decision(
            rng.choice(["bandwidth", "undetermined", "none"]),
            rng.uniform(0, 1.2),
            rng.uniform(0, 1),
            None,
            rng.uniform(-1, 1.5),
            rng.uniform(0, 0.9),
            "a test",
        )
        windows = tuple(window(i, i + 1, rng.choice(["bandwidth", "host"])) for i in range(3))
        found = confidence(decision, windows)
        assert 0.0 <= found <= 0.99
        surer = dataclasses.replace(
            decision,
            quality=decision.quality + 0.1,
            next_share=decision.next_share * 0.9,
            unexplained=decision.unexplained - 0.1,
        )
        assert confidence(surer, windows) >= found
