"""Pages of /metrics, which tell Unix time, beside a log and a GPU's record, which do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from joined import offsets_s, read_together, sentences
from scripted_load import LOAD, Load, gpu_csv, metrics_pages, server_log

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture

HOUR = 3600.0
# Never idle: 8 in flight, and now and then more.
WAVES = Load(((-10.0, 1000.0, 8), (60.0, 145.3, 16), (190.7, 260.2, 20), (331.9, 420.4, 12)), 640.0)


def running(capture: Capture, engine: str = "0") -> list[tuple[float, float]]:
    return [
        (s.t_ns / 1e9, s.value)
        for s in capture.engine_samples
        if (s.engine, s.name) == (engine, "running")
    ]


def test_three_sources_of_three_clocks(tmp_path: Path) -> None:
    files = {
        "metrics.prom": metrics_pages(LOAD),
        "server.log": server_log(LOAD, ahead_s=2 * HOUR),  # central Europe in summer
        "gpu.csv": gpu_csv(LOAD, ahead_s=-5 * HOUR),  # New York without daylight saving
    }
    capture = read_together(tmp_path, files)
    assert [s.kind for s in capture.sources] == ["metrics page", "vllm log", "nvidia-smi"]
    # Time 0 is the first page, 0.3 s after noon; the others' time 0 is noon.
    assert offsets_s(capture) == pytest.approx([0, -0.3, -0.3])
    log, gpu, *_ = sentences(capture)
    assert "server.log's shows 2 h ahead of metrics.prom's, as another time zone does" in log
    assert "gpu.csv's shows 5 h behind metrics.prom's, as another time zone does" in gpu


def test_the_server_is_counted_once_by_the_better_source(tmp_path: Path) -> None:
    pages, log = metrics_pages(LOAD), server_log(LOAD)
    alone = read_together(tmp_path, {"metrics.prom": pages, "gpu.csv": gpu_csv(LOAD)})
    both = read_together(tmp_path, {"metrics.prom": pages, "server.log": log})
    assert running(both) == running(alone)
    assert len(running(both)) == 640
    assert {s.engine for s in both.engine_samples} == {"0"}
    # The pages tell no hit rate, the log does.
    names = {s.name for s in alone.engine_samples}
    assert {s.name for s in both.engine_samples} - names == {"prefix_hit_fraction"}


def test_models_that_differ_are_said(tmp_path: Path) -> None:
    args = (
        "(APIServer pid=7) INFO 06-17 12:00:00 [utils.py:1] non-default args: {'model': "
        "'/models/qwen'}\n"
    )
    files = {"metrics.prom": metrics_pages(LOAD), "server.log": args + server_log(LOAD)}
    told = "metrics.prom is of model meta/Llama-3-8B, server.log of /models/qwen. Are they of one"
    assert any(s.startswith(told) for s in sentences(read_together(tmp_path, files)))


def test_a_server_that_never_idles_is_checked_by_how_many_it_serves(tmp_path: Path) -> None:
    files = {"metrics.prom": metrics_pages(WAVES), "server.log": server_log(WAVES, ahead_s=HOUR)}
    capture = read_together(tmp_path, files)
    assert offsets_s(capture) == pytest.approx([0, -0.3])
    assert "server.log's shows 1 h ahead of metrics.prom's" in sentences(capture)[0]
    assert "rises and falls of requests in flight agree" in sentences(capture)[0]


def test_another_zone_without_any_event_is_refused(tmp_path: Path) -> None:
    steady = Load(((-10.0, 9000.0, 8),), 4000.0)
    files = {
        "metrics.prom": metrics_pages(steady, until_s=3900),
        "server.log": server_log(steady),
    }
    with pytest.raises(InputError) as caught:
        read_together(tmp_path, files)
    assert "share no begin or end of work, and a time zone is not stated" in str(caught.value)
    capture = read_together(tmp_path, files, {"server.log": 0})
    assert offsets_s(capture) == pytest.approx([0, -0.3])


def test_a_short_watch_of_a_long_log_leaves_one_zone(tmp_path: Path) -> None:
    # Ten minutes of both: an hour away they do not overlap, so noon is noon.
    steady = Load(((-10.0, 9000.0, 8),), 600.0)
    files = {"metrics.prom": metrics_pages(steady), "server.log": server_log(steady)}
    (told, *_) = sentences(read_together(tmp_path, files))
    assert told == (
        "server.log is joined with metrics.prom by their wall clocks, not checked by events "
        "(within ± 1.0 s)."
    )


def test_requests_between_two_looks_are_seen_by_the_counters(tmp_path: Path) -> None:
    # One request of 0.4 s after the other, each second anew: every look sees none in flight.
    bursts = tuple((60.0 + i, 60.4 + i, 1) for i in range(100))
    bursts += tuple((300.0 + i, 300.4 + i, 1) for i in range(40))
    load = Load(bursts, 400.0)
    files = {"metrics.prom": metrics_pages(load, from_s=0.7), "server.log": server_log(load)}
    capture = read_together(tmp_path, files)
    assert {value for _, value in running(capture)} == {0.0}
    assert "3 of 3 begins and ends of work agree" in sentences(capture)[0]
