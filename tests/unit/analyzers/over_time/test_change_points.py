"""Change points of whole runs: none of a steady one, one at the joint of two, with its figures."""

from __future__ import annotations

import random

import pytest
from capture_builders import MS, ON_CPU, gauges, step, timed_linears
from hypothesis import given, settings
from hypothesis import strategies as st

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.over_time.points import find
from stallscope.analyzers.over_time.track import Track
from stallscope.analyzers.result import Diagnosis, Window
from stallscope.profiler.capture import Capture, EngineSample, Step
from stallscope.profiler.spec import Subject

SECONDS = 120  # a sample a second: twelve windows of ten


def sampled(
    running: tuple[float, ...], waiting: tuple[float, ...], used: tuple[float, ...]
) -> tuple[EngineSample, ...]:
    """Gauges, and a token a second for each running request."""
    tokens, made = [0.0], 0.0
    for count in running[:-1]:
        made += 20 * count
        tokens.append(made)
    return gauges(
        1000.0,
        running=running,
        waiting=waiting,
        kv_used_fraction=used,
        output_tokens_total=tuple(tokens),
    )


def watched(samples: tuple[EngineSample, ...], cap: int = 64) -> Diagnosis:
    return diagnose(Capture(subject=Subject(max_num_seqs=cap), engine_samples=samples))


@settings(max_examples=40, deadline=None)
@given(
    running=st.integers(0, 64),
    waiting=st.integers(0, 100),
    used=st.floats(0.0, 1.0),
)
def test_a_steady_run_has_none(running: int, waiting: int, used: float) -> None:
    flat = SECONDS + 1
    assert watched(sampled((running,) * flat, (waiting,) * flat, (used,) * flat)).changes == ()


@settings(max_examples=40, deadline=None)
@given(
    joint=st.integers(30, 90),
    running=st.integers(5, 31),
    waiting=st.integers(16, 100),
    used=st.floats(0.1, 0.8),
)
def test_two_steady_halves_have_one_at_the_joint(
    joint: int, running: int, waiting: int, used: float
) -> None:
    """64 of 64 run and as many wait with room in the pool; then the pool is full and fewer run."""
    rest = SECONDS + 1 - joint
    found = watched(
        sampled(
            (*(64,) * joint, *(running,) * rest),
            (*(64,) * joint, *(waiting,) * rest),
            (*(used,) * joint, *(1.0,) * rest),
        )
    ).changes
    assert [(c.phase, c.before.limit, c.after.limit) for c in found] == [("all", "seqs", "kv")]
    (change,) = found
    assert abs(change.at_s - joint) <= SECONDS / 12
    figure = change.figures[0]
    assert (figure.name, figure.before, figure.after) == ("kv_used", pytest.approx(used), 1.0)
    assert figure.provenance == "measured"


def test_what_changed_is_named_with_its_figures() -> None:
    """At 41 s the pool is full, and of 64 that ran 31 are left."""
    found = watched(
        sampled(
            (*(64,) * 41, *(31,) * 80),
            (*(20,) * 41, *(53,) * 80),
            (*(0.5,) * 41, *(1.0,) * 80),
        )
    )
    (change,) = found.changes
    assert (change.at_s, change.error_s) == (41.0, 1.0)
    assert change.before.text == "the sequence cap holds the queue"
    assert change.after.text == "the KV cache is full"
    # Tokens fall with those that run: 20 a second each, from 1,280 to 620.
    assert [(f.name, f.before, f.after) for f in change.figures] == [
        ("kv_used", 0.5, 1.0),
        ("running", 64.0, 31.0),
        ("waiting", 20.0, 53.0),
        ("output_tokens_rate", 1280.0, 620.0),
    ]
    assert found.verdict.sentence.endswith(
        " Over time: first the sequence cap holds the queue (0 to 41 s), then the KV cache is full "
        "(41 to 120 s)."
    )


@pytest.mark.parametrize("seed", range(30))
def test_a_queue_at_its_threshold_has_none(seed: int) -> None:
    """A fifth of the requests waits on average, and in each window more or less of them."""
    rng = random.Random(seed)
    flat = SECONDS + 1
    waiting = tuple(max(0.0, round(rng.gauss(16, 6))) for _ in range(flat))
    found = watched(sampled((64,) * flat, waiting, (0.5,) * flat))
    assert len({(w.load, w.limit) for w in found.windows}) in (1, 2)
    assert found.changes == ()
    assert "Over time" not in found.verdict.sentence
    assert "changes" not in found.verdict.sentence


def test_some_of_these_windows_do_differ() -> None:
    """Else the test above would try nothing: answers do come and go, and no figure with them."""
    differ = 0
    for seed in range(30):
        rng = random.Random(seed)
        waiting = tuple(max(0.0, round(rng.gauss(16, 6))) for _ in range(SECONDS + 1))
        found = watched(sampled((64,) * 121, waiting, (0.5,) * 121))
        differ += len({w.load for w in found.windows}) > 1
    assert differ >= 10


def windows(*limits: str | None) -> list[Window]:
    """Windows of 8 s."""
    kinds = {"kv": "capacity", "seqs": "scheduling", None: "undetermined"}
    return [
        Window(8.0 * i, 8.0 * i + 8, kinds[limit], "overloaded" if limit else "served", limit)
        for i, limit in enumerate(limits)
    ]


def seen(*values: float) -> tuple[Track, ...]:
    times = tuple(float(i) for i in range(len(values)))
    return (Track("running", "requests", "measured", "by hand", times, values, 1.0, True),)


def test_without_a_figure_an_answer_that_differs_is_no_change() -> None:
    rows = windows("seqs", "seqs", "seqs", "kv", "kv")
    stretches, changes = find(rows, lambda: ())
    assert [(w.from_s, w.to_s, w.limit) for w in stretches] == [(0, 40, "seqs")]
    assert changes == ()


def test_only_what_moved_is_a_change() -> None:
    """Running falls at 16 s, where the cap stops to hold; at 32 s an answer differs, no figure."""
    rows = windows("seqs", "seqs", "kv", "kv", "seqs", "seqs")
    stretches, changes = find(rows, lambda: seen(*[64.0] * 16, *[31.0] * 32))
    assert [(c.at_s, c.before.limit, c.after.limit) for c in changes] == [(16, "seqs", "kv")]
    assert [(w.from_s, w.to_s, w.limit) for w in stretches] == [(0, 16, "seqs"), (16, 48, "kv")]


@pytest.mark.parametrize(("higher", "moves"), [(39.0, False), (40.0, True)])
def test_what_a_figure_does_all_the_time_is_no_change(higher: float, moves: bool) -> None:
    """From window to window it differs by 10 in each stretch: three times that is 30.

    The medians are 10 before, and 39 or 40 after.
    """
    levels = (10.0, 20.0, 10.0, higher, higher - 10, higher)
    values = [level for level in levels for _ in range(8)]
    rows = windows("seqs", "seqs", "seqs", "kv", "kv", "kv")
    assert bool(find(rows, lambda: seen(*values))[1]) is moves


def test_figures_are_read_only_where_an_answer_differs() -> None:
    def never() -> tuple[Track, ...]:
        raise AssertionError("nothing differs")

    assert find(windows("kv", "kv", "kv"), never)[1] == ()
    assert find([], never) == ((), ())


def served(first: int, start_ms: float, groups: int, host_ms: float) -> tuple[Step, ...]:
    """Groups of three decode steps and one prefill, each 1 ms and the host's time."""
    rows = []
    for i in range(4 * groups):
        phase = "prefill" if i % 4 == 3 else "decode"
        own_ms = host_ms if phase == "decode" else 0.0
        rows.append(
            step(
                first + i,
                start_ms,
                1 + own_ms,
                phase=phase,
                device_ns=MS,
                host_ns=round(own_ms * MS),
                waiting=0,
                running=1,
            )
        )
        start_ms += 1 + own_ms
    return tuple(rows)


def test_prefill_and_decode_are_judged_apart() -> None:
    """Decode: 0.86 of 1 ms in weights and KV, then the host takes 3 of 4 ms; prefill as ever.

    Two hundred groups take 800 ms; fifty with 9 ms more take 50 · (4 + 9) = 650 ms.
    """
    steps = (*served(0, 0.0, 200, 0.0), *served(800, 800.0, 50, 3.0))
    found = diagnose(Capture(subject=ON_CPU, steps=steps, events=timed_linears()))
    decode = [p.bottleneck for w in found.windows for p in w.phases if p.phase == "decode"]
    prefill = {p.bottleneck for w in found.windows for p in w.phases if p.phase == "prefill"}
    assert decode[0] == "bandwidth"
    assert decode[-1] == "host"
    assert len(prefill) == 1
    changes = {c.phase: c for c in found.changes}
    assert set(changes) == {"all", "decode"}
    decoded = changes["decode"]
    assert (decoded.before.bottleneck, decoded.after.bottleneck) == ("bandwidth", "host")
    # The first slow step comes after 799 steps of 1 ms and its prefill: at 0.8 s.
    assert decoded.at_s == pytest.approx(0.8, abs=0.005)
    share = next(f for f in decoded.figures if f.name == "share_host")
    assert (share.before, share.after) == (0.0, pytest.approx(0.75))
    assert share.provenance == "derived"
    limited = {p.phase: p.bottleneck for p in found.phases}
    assert limited["prefill"] == prefill.pop()
    assert limited["all"] is None


def test_one_phase_alone_is_not_told_twice() -> None:
    steps = tuple(s for s in served(0, 0.0, 200, 0.0) if s.phase == "decode")
    late = tuple(s for s in served(800, 800.0, 50, 3.0) if s.phase == "decode")
    found = diagnose(Capture(subject=ON_CPU, steps=steps + late, events=timed_linears()))
    assert {c.phase for c in found.changes} == {"all"}
