"""Stretches of one phase, and the samples whose whole second lies in one."""

from __future__ import annotations

import pytest
from capture_builders import MS, step

from stallscope.analyzers.stretches import samples_in, stretches
from stallscope.profiler.capture import Capture, DeviceSample, Step


def row(*lengths: tuple[str, float], start_ms: float = 0.0, rank: int = 0) -> tuple[Step, ...]:
    """Steps of a rank that follow upon each other: phase (or "warmup", "gap") and ms."""
    found: list[Step] = []
    for phase, ms in lengths:
        if phase != "gap":
            is_warmup = phase == "warmup"
            name = "decode" if is_warmup else phase
            found.append(step(0, start_ms, ms, phase=name, warmup=is_warmup, rank=rank))
        start_ms += ms
    return tuple(s._replace(id=i) for i, s in enumerate(found))


def spans(steps: tuple[Step, ...], phase: str) -> list[tuple[float, float]]:
    return [(s.start_ns / MS, s.end_ns / MS) for s in stretches(steps, phase)]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        (row(("decode", 2000)), [(0, 2000)]),
        (row(("decode", 1999.999)), []),
        (row(*[("decode", 100)] * 20), [(0, 2000)]),
        (row(*[("decode", 100)] * 19), []),
        (row(("prefill", 2500), ("decode", 2000)), [(2500, 4500)]),
        (row(("decode", 1500), ("prefill", 1), ("decode", 1500)), []),
        (row(("decode", 2000), ("mixed", 1), ("decode", 2500)), [(0, 2000), (2001, 4501)]),
        (row(("warmup", 3000), ("decode", 1999)), []),
        (row(("decode", 1000), ("warmup", 10), ("decode", 1000)), []),
        (row(("decode", 1000), ("gap", 100), ("decode", 900)), [(0, 2000)]),
        (row(("decode", 1000), ("gap", 100.001), ("decode", 1000)), []),
        ((), []),
    ],
)
def test_decode_stretches(steps: tuple[Step, ...], found: list[tuple[float, float]]) -> None:
    assert spans(steps, "decode") == found


def test_steps_that_overlap_in_a_rank_belong_to_no_phase_alone() -> None:
    steps = (step(0, 0, 5000), step(1, 2500, 500, phase="prefill"), step(2, 2800, 3000))
    assert spans(steps, "decode") == [(0, 2500), (3000, 5800)]


def test_all_ranks_must_be_in_the_phase() -> None:
    one = row(("prefill", 1000), ("decode", 5000))
    late = row(("prefill", 3000), ("decode", 2500), rank=1)
    assert spans((*one, *late), "decode") == [(3000, 5500)]
    later = row(("prefill", 4001), ("decode", 5000), rank=1)
    assert spans((*one, *later), "decode") == []
    other = row(("prefill", 6000), rank=1)
    assert spans((*one, *other), "decode") == []


def test_a_stretch_is_cut_where_another_rank_turns_to_something_else() -> None:
    one = row(("decode", 9000))
    other = row(("decode", 2500), ("prefill", 100), ("decode", 6000), rank=1)
    assert spans((*one, *other), "decode") == [(0, 2500), (2600, 8600)]


@pytest.mark.parametrize(
    ("t_ms", "is_own"),
    [
        (2999.999, False),  # its second began before the stretch did
        (3000, True),
        (4000, True),
        (4000.001, False),
        (5000, False),
        (6000, False),  # in the next stretch, for 0.9 s
        (6100, True),
        (7100, True),
    ],
)
def test_a_sample_speaks_of_the_second_before_it(t_ms: float, is_own: bool) -> None:
    # Decode from 2 to 4 s and from 5.1 to 7.1 s.
    steps = row(("prefill", 2000), ("decode", 2000), ("prefill", 1100), ("decode", 2000))
    sample = DeviceSample(round(t_ms * MS), "gpu0", "gpm_dram_util", 0.5, "fraction")
    capture = Capture(steps=steps, device_samples=(sample,))
    assert samples_in(capture, "decode").device_samples == ((sample,) if is_own else ())
    assert samples_in(capture, "decode").steps == steps
