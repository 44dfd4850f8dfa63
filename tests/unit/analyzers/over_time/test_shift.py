"""Whether a figure moved: just past each line and just under it, by hand-made series."""

from __future__ import annotations

import random

import pytest

from stallscope.analyzers.over_time.shift import Stretches, apart, shift
from stallscope.analyzers.over_time.track import Block, Track

# Windows of 8 s, a reading a second: a block for each. Two of them on either side of 16 s.
TWO = Stretches(0.0, 16.0, 16.0, 32.0, 8.0)


def track(*values: float, least: float = 0.0, is_held: bool = True) -> Track:
    times = tuple(float(i) for i in range(len(values)))
    return Track("running", "requests", "measured", "by hand", times, values, least, is_held)


def halves(before: float, after: float, at: int = 16, least: float = 0.0) -> Track:
    return track(*[before] * at, *[after] * (32 - at), least=least)


def test_a_step_is_found_where_it_is() -> None:
    found = shift(halves(64, 31), TWO)
    assert found is not None
    assert (found.before, found.after, found.at_s, found.error_s) == (64, 31, 16, 1)


@pytest.mark.parametrize("at", [8, 12, 20, 24])
def test_it_may_lie_a_window_beside_where_the_answers_part(at: int) -> None:
    found = shift(halves(64, 31, at), TWO)
    assert found is not None
    assert found.at_s == at


@pytest.mark.parametrize("at", [7, 25])
def test_what_moved_elsewhere_is_not_what_changed_here(at: int) -> None:
    """A split at 8 s leaves seven blocks of 64 and one of 31 before it, and only 31 behind it.

    Of the pairs seven eighths show it and the ties of the eighth count half: 15/16, under 0.95.
    """
    assert shift(halves(64, 31, at), TWO) is None


@pytest.mark.parametrize(("after", "moves"), [(111.0, False), (111.2, True)])
def test_a_tenth_of_the_larger_is_drift(after: float, moves: bool) -> None:
    """11.0 is 9.9 % of 111, and 11.2 is 10.07 % of 111.2."""
    assert (shift(halves(100, after), TWO) is not None) is moves


@pytest.mark.parametrize(("after", "moves"), [(2.99, False), (3.0, True)])
def test_less_than_a_request_is_no_change(after: float, moves: bool) -> None:
    assert (shift(halves(2.0, after, least=1.0), TWO) is not None) is moves


def test_pairs_are_counted() -> None:
    """1 < 2, 1 < 3, 2 = 2 (a half), 2 < 3: three and a half of four, whichever comes first."""
    assert apart([1, 2], [2, 3]) == apart([3, 2], [2, 1]) == 0.875
    assert apart([1, 2], [1, 2]) == 0.5
    assert apart([1, 2, 3], [4]) == 1.0


@pytest.mark.parametrize(("stray", "moves"), [(15.0, True), (30.0, False)])
def test_nineteen_of_twenty_pairs_must_show_it(stray: float, moves: bool) -> None:
    """Sixteen blocks of 10 and sixteen of 20: of the 256 pairs those of one stray block are 16.

    Between the levels it costs none; above both 16, and 240 of 256 is 0.9375.
    """
    values = [10.0] * 16 + [20.0] * 16
    values[5] = stray
    assert (shift(track(*values), TWO) is not None) is moves


@pytest.mark.parametrize(("blocks", "moves"), [(4, False), (5, True)])
def test_a_side_has_five_blocks(blocks: int, moves: bool) -> None:
    two = Stretches(0.0, float(blocks), float(blocks), 32.0, 8.0)
    values = track(*[64.0] * blocks, *[31.0] * (32 - blocks))
    assert (shift(values, two) is not None) is moves


def test_the_arrival_counts_and_not_half_the_way() -> None:
    """A pool that fills by 0.06 a second from 0, and stays at 0.99 from 17 s on."""
    values = track(*(min(0.99, 0.06 * i) for i in range(32)))
    found = shift(values, TWO)
    assert found is not None
    assert found.after == pytest.approx(0.99)
    # 0.96 at 16 s is the first reading within a tenth of the way of 0.99.
    assert found.at_s + found.error_s >= 16
    assert 14 <= found.at_s <= 17


def test_a_slow_way_down_is_known_less_well() -> None:
    """64 until 13 s, then down by 5 a second to 34, and 31 from 20 s on."""
    down = [64 - 5 * i for i in range(1, 7)]
    found = shift(track(*[64.0] * 14, *down, *[31.0] * 12), TWO)
    assert found is not None
    # 64 is left behind 13 s; 34, at 19 s, is within a tenth of the way of 31.
    assert found.at_s - found.error_s <= 13
    assert found.at_s + found.error_s >= 19
    assert found.error_s <= 6


def test_noise_does_not_move() -> None:
    """Two hundred series of one level and noise of a quarter of it."""
    for seed in range(200):
        rng = random.Random(seed)
        assert shift(track(*(rng.gauss(40, 10) for _ in range(32)), least=1.0), TWO) is None, seed


def test_what_comes_and_goes_is_compared_by_windows() -> None:
    """Three windows in which every fourth reading waits, then eight without: one order of 165.

    Their medians are 0 on both sides. Two windows against nine would be one order of 55.
    """
    bursts = [0.0, 0.0, 0.0, 12.0] * 2
    for count, moves in ((3, True), (2, False)):
        values = track(*bursts * count, *[0.0] * 8 * (11 - count), least=1.0)
        edge = 8.0 * count
        found = shift(values, Stretches(0.0, edge, edge, 88.0, 8.0))
        assert (found is not None) is moves
        if found is not None:
            assert (found.before, found.after) == (3.0, 0.0)  # 2 · 12 of 8 readings
            assert (found.at_s, found.error_s) == (24.0, 8.0)


def test_a_gauge_holds_and_a_rate_does_not() -> None:
    times, values = (0.0, 5.0), (3.0, 9.0)
    held = Track("running", "requests", "measured", "", times, values, is_held=True)
    assert list(held.blocks(0.0, 8.0, 2.0)) == [
        Block(0.0, 3.0),
        Block(2.0, 3.0),
        Block(4.0, 9.0),
        Block(6.0, 9.0),
    ]
    rate = Track("output_tokens_rate", "tokens/s", "derived", "", times, values)
    assert list(rate.blocks(0.0, 8.0, 2.0)) == [Block(0.0, 3.0), Block(4.0, 9.0)]
    assert list(held.blocks(-4.0, 0.0, 2.0)) == []
