"""Confidence: a probability that moves the right way with each piece of evidence."""

from __future__ import annotations

import dataclasses
import random

import pytest

from stallscope.analyzers.confidence import confidence, grounds, margin, stability
from stallscope.analyzers.confidence_map import (
    CLASS_KNOTS,
    UNDETERMINED_KNOTS,
    Knots,
    interpolate,
)
from stallscope.analyzers.result import Window
from stallscope.analyzers.step.limit import Decision

CLEAR = Decision("bandwidth", 0.8, 0.1, "host", 0.1, 1.0, "a test")


def window(from_s: float, to_s: float, bottleneck: str) -> Window:
    return Window(from_s, to_s, bottleneck, "served")


def sureness(decision: Decision, windows: tuple[Window, ...], most: float = 1.0) -> float:
    return confidence(decision, grounds(decision, windows, most))


def test_weight_by_hand() -> None:
    # margin 1, stability 1, unexplained 0.1: 1.0 · 0.95
    assert grounds(CLEAR, ()).weight == pytest.approx(0.95)
    # quality 0.4, twice half margin, half the time stable, unexplained 0.2:
    # 0.4 · 0.75 · 0.75 · 0.9 = 0.2025
    close = dataclasses.replace(CLEAR, share=0.6, next_share=0.4, unexplained=0.2, quality=0.4)
    half = (window(0, 1, "bandwidth"), window(1, 2, "host"))
    found = grounds(close, half)
    assert found.weight == pytest.approx(0.2025)
    assert (found.quality, found.stability, found.unexplained) == (0.4, 0.5, 0.2)
    assert (found.margin, found.most) == (pytest.approx(0.5), 0.99)


def test_between_knots_by_hand() -> None:
    knots = ((0.0, 0.4), (0.5, 0.8), (1.0, 0.9))
    # halfway up the first line; a fifth along the second: 0.8 + 0.2 · 0.1
    assert interpolate(knots, 0.25) == pytest.approx(0.6)
    assert interpolate(knots, 0.6) == pytest.approx(0.82)
    assert [interpolate(knots, at) for at in (0.0, 0.5, 1.0)] == pytest.approx([0.4, 0.8, 0.9])


@pytest.mark.parametrize("knots", [CLASS_KNOTS, UNDETERMINED_KNOTS])
def test_the_map_never_falls_and_spans_all_weights(knots: Knots) -> None:
    weights, values = [k[0] for k in knots], [k[1] for k in knots]
    assert weights[0] == 0.0
    assert weights[-1] == 1.0
    assert weights == sorted(set(weights))
    assert values == sorted(values)
    assert values[0] > 0.0
    assert values[-1] < 1.0


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
    assert sureness(up, ()) > sureness(down, ())


def test_windows_that_disagree_lower_it() -> None:
    steady = (window(0, 1, "bandwidth"), window(1, 2, "bandwidth"))
    torn = (window(0, 1, "bandwidth"), window(1, 2, "host"))
    assert sureness(CLEAR, steady) > sureness(CLEAR, torn)


def test_undetermined_is_the_surer_the_further_from_any_class() -> None:
    # A class that holds 0.5 is about to be named: 0.2 leaves 1 − 0.2 / 0.5 = 0.6.
    blind = Decision("undetermined", 0.0, 0.0, None, 1.0, 0.4, "a test")
    some, near = (dataclasses.replace(blind, share=share) for share in (0.2, 0.49))
    assert grounds(some, ()).weight == pytest.approx(0.6)
    assert sureness(blind, ()) > sureness(some, ()) > sureness(near, ()) >= 0.5
    assert sureness(dataclasses.replace(blind, share=1.4), ()) == 0.5


def test_one_moment_caps_any_verdict() -> None:
    assert sureness(CLEAR, (), most=0.65) == 0.65
    assert sureness(Decision("undetermined", 0.0, 0.0, None, 1.0, 0.4, "a"), (), most=0.65) == 0.65


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
        found = sureness(decision, windows)
        assert 0.0 <= found <= 0.99
        surer = dataclasses.replace(
            decision,
            quality=decision.quality + 0.1,
            next_share=decision.next_share * 0.9,
            unexplained=decision.unexplained - 0.1,
        )
        assert sureness(surer, windows) >= found
