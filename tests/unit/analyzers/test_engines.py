"""Samples of several engines on one time line."""

from __future__ import annotations

import random

from capture_builders import MS, gauges

from stallscope.analyzers.load.engines import clip, moments
from stallscope.profiler.capture import EngineSample


def of(engine: str, rows: tuple[EngineSample, ...], late_ms: float = 0) -> tuple[EngineSample, ...]:
    shift = round(late_ms * MS)
    return tuple(s._replace(engine=engine, t_ns=s.t_ns + shift) for s in rows)


def test_each_moment_lasts_to_the_next_and_the_last_closes() -> None:
    found = moments(gauges(waiting=(0, 1, 2), running=(3, 3, 3)))
    assert [(m.start_ns, m.duration_ns) for m in found] == [(0, MS), (MS, MS), (2 * MS, 0)]
    assert [m.engines["engine"]["waiting"] for m in found] == [0, 1, 2]
    assert moments(()) == moments(gauges(waiting=(1, 1))) == ()


def test_a_name_that_is_sampled_more_rarely_keeps_its_last_value() -> None:
    often = gauges(waiting=(1, 1, 1, 1), running=(2, 2, 2, 2))
    rare = gauges(2, kv_used_bytes=(10, 30))
    found = moments(often + rare)
    assert [m.engines["engine"]["kv_used_bytes"] for m in found] == [10, 10, 30, 30]


def test_the_order_of_rows_and_the_names_of_engines_do_not_matter() -> None:
    rows = list(
        of("a", gauges(waiting=(1, 2, 3), running=(1, 1, 1)))
        + of("b", gauges(waiting=(5, 6, 7), running=(2, 2, 2)), 0.5)
    )
    found = moments(rows)
    random.Random(1).shuffle(rows)
    assert moments(rows) == found
    sums = [sum(v["waiting"] for v in m.engines.values()) for m in found]
    # At 0 the second engine is half an interval from its first sample, and counts already.
    assert sums == [6, 6, 7, 8, 9, 10]
    assert [m.start_ns for m in found] == [round(i * MS / 2) for i in range(6)]


def test_many_engines_need_no_finer_grid_than_half_their_interval() -> None:
    one = gauges(waiting=(1,) * 9, running=(1,) * 9)
    rows = [s for i in range(50) for s in of(str(i), one, i / 50)]
    found = moments(rows)
    assert len(found) <= 2 * 9 + 2
    assert all(len(m.engines) == 50 for m in found)


def test_an_engine_that_fell_silent_is_not_counted_on() -> None:
    rows = of("a", gauges(waiting=(1,) * 3, running=(1,) * 3))
    rows += of("b", gauges(waiting=(0,) * 9, running=(1,) * 9))
    found = moments(rows)
    assert [sorted(m.engines) for m in found] == [["a", "b"]] * 4 + [["b"]] * 5


def test_clip() -> None:
    found = moments(gauges(waiting=(0, 1, 2), running=(3, 3, 3)))
    kept = clip(found, MS // 2, 3 * MS // 2)
    assert [(m.start_ns, m.duration_ns) for m in kept] == [(MS // 2, MS // 2), (MS, MS // 2)]
    assert clip(found, 5 * MS, 9 * MS) == ()
