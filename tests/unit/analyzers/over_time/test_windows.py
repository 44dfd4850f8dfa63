"""Windows: how many, how long, and that a limit that changes is seen to change."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, batch_one, decodes, request, samples, step

from stallscope.analyzers.load.span import Span
from stallscope.analyzers.over_time.windows import MAX_WINDOWS, judge_windows, split
from stallscope.analyzers.prepared import prepare
from stallscope.analyzers.result import Window
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture

T = Thresholds()


def windows(capture: Capture) -> tuple[Window, ...]:
    run = prepare(capture, T)
    return judge_windows(
        capture, run.costs, cost=run.cost, missing=run.why_no_budget, span=run.span, t=T
    )


@pytest.mark.parametrize(("steps", "count"), [(19, 1), (39, 1), (40, 2), (220, 11), (1000, 12)])
def test_a_window_holds_twenty_steps(steps: int, count: int) -> None:
    run = prepare(Capture(steps=decodes(steps)), T)
    assert len(split(run.span, run.costs)) == count <= MAX_WINDOWS


def test_windows_cover_the_span_without_gap_or_overlap() -> None:
    run = prepare(Capture(steps=decodes(100, 0.7)), T)
    parts = split(run.span, run.costs)
    assert (parts[0].start_ns, parts[-1].end_ns) == (run.span.start_ns, run.span.end_ns)
    assert all(a.end_ns == b.start_ns for a, b in zip(parts, parts[1:], strict=False))
    assert split(Span(5, 5), run.costs) == ()


def test_a_limit_that_changes_half_way_shows_both() -> None:
    """200 ms: first a second request waits for KV room, then both decode."""
    queueing = tuple(step(i, i, 1, waiting=1, running=1, blocked_by="kv") for i in range(100))
    served = tuple(step(i, i, 1, waiting=0, running=2) for i in range(100, 200))
    rows = (request(0, 0, 0, 1, 200), request(1, 0, 100, 101, 200))
    capture = dataclasses.replace(batch_one(), steps=queueing + served, requests=rows)
    found = windows(capture)
    assert [w.bottleneck for w in found] == ["capacity"] * 5 + ["bandwidth"] * 5
    assert [w.load for w in found] == ["overloaded"] * 5 + ["served"] * 5
    assert (found[0].from_s, found[4].to_s, found[-1].to_s) == pytest.approx((0.0, 0.1, 0.2))


def test_counters_that_change_half_way_are_read_window_by_window() -> None:
    tensor = samples("gpm_tensor_util", *[0.7] * 100, *[0.1] * 100)
    dram = samples("gpm_dram_util", *[0.3] * 100, *[0.7] * 100)
    capture = Capture(steps=decodes(200), device_samples=tensor + dram)
    # The edge sample at 100 ms is also the last of the fifth window: 0.67, still past 0.60.
    assert [w.bottleneck for w in windows(capture)] == ["compute"] * 5 + ["bandwidth"] * 5


def test_a_pause_is_a_window_of_its_own_load() -> None:
    first = tuple(step(i, i, 1, waiting=0, running=1) for i in range(40))
    later = step(40, 160, 1, phase="prefill", waiting=0, running=1)
    rest = tuple(step(i, i + 120, 1, waiting=0, running=1) for i in range(41, 80))
    loads = [w.load for w in windows(Capture(steps=(*first, later, *rest)))]
    assert loads == ["served"] * 2 + ["idle"] * 6 + ["served"] * 2


def test_times_count_from_the_spans_start() -> None:
    late = tuple(step(i, 5000 + i, 1) for i in range(40))
    (first, second) = windows(Capture(steps=late))
    edges = (first.from_s, first.to_s, second.from_s, second.to_s)
    assert edges == pytest.approx((0, 0.02, 0.02, 0.04))
    assert late[0].start_ns == 5000 * MS
