"""A log and a GPU's record of one scripted load, each on a clock of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from joined import offsets_s, read_together, sentences
from scripted_load import LOAD, NEW_YEAR, Load, gpu_csv, server_log

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture

ALWAYS = Load(((-10.0, 1000.0, 16),), 640.0)


def both(folder: Path, log: str, csv: str, **stated: float) -> Capture:
    offsets = {name.replace("_", "."): seconds for name, seconds in stated.items()}
    return read_together(folder, {"server.log": log, "gpu.csv": csv}, offsets)


def test_clocks_that_agree_are_checked_by_events(tmp_path: Path) -> None:
    capture = both(tmp_path, server_log(LOAD), gpu_csv(LOAD))
    assert [s.kind for s in capture.sources] == ["vllm log", "nvidia-smi"]
    assert offsets_s(capture) == [0, 0]
    assert capture.meta["joined"] == [
        {
            "source": "gpu.csv",
            "offset_ns": 0,
            "offset_error_ns": capture.sources[1].offset_error_ns,
            "residual_ns": 0,
        }
    ]
    assert sentences(capture)[0].startswith(
        "gpu.csv is joined with server.log by their wall clocks: 7 of 7 begins and ends of work "
        "agree (residual 0.0 s, offset within ± "
    )


@pytest.mark.parametrize(
    ("ahead_s", "words"),
    [
        (3600, "1 h ahead of"),
        (-3600, "1 h behind"),
        (19_800, "5 h 30 min ahead of"),
        (-20_700, "5 h 45 min behind"),
    ],
)
def test_a_zone_that_is_not_stated_is_found(tmp_path: Path, ahead_s: float, words: str) -> None:
    capture = both(tmp_path, server_log(LOAD), gpu_csv(LOAD, ahead_s=ahead_s))
    assert offsets_s(capture) == [0, 0]  # both began at noon, whatever they showed
    told = f"(gpu.csv's shows {words} server.log's, as another time zone does): 7 of 7"
    assert told in sentences(capture)[0]


@pytest.mark.parametrize("ahead_s", [0, 3600])
def test_a_new_year_inside_the_files(tmp_path: Path, ahead_s: float) -> None:
    load = replace(LOAD, start=NEW_YEAR)
    log, csv = server_log(load), gpu_csv(load, ahead_s=ahead_s)
    assert "INFO 12-31 23:5" in log
    assert "INFO 01-01 00:0" in log
    assert "2026/01/01" in csv
    capture = both(tmp_path, log, csv)
    assert offsets_s(capture) == [0, 0]
    assert "7 of 7 begins and ends" in sentences(capture)[0]


def test_a_log_that_began_before_new_year_and_a_record_after(tmp_path: Path) -> None:
    load = replace(LOAD, start=NEW_YEAR)
    # From 00:00:20 on; the log began at 23:54.
    capture = both(tmp_path, server_log(load), gpu_csv(load, from_s=380.0))
    assert offsets_s(capture) == [0, 380]


@pytest.mark.parametrize("ahead_s", [600, -600, 47, 3600 + 600])
def test_a_clock_that_is_wrong_is_found_by_events(tmp_path: Path, ahead_s: float) -> None:
    capture = both(tmp_path, server_log(LOAD), gpu_csv(LOAD, ahead_s=ahead_s))
    (offset, error) = offsets_s(capture)[1], capture.sources[1].offset_error_ns / 1e9
    assert abs(offset) <= error <= 5
    (told, *_) = sentences(capture)
    assert told.startswith("gpu.csv is joined with server.log by events, as their clocks are ")
    assert "apart beyond what a time zone explains: 7 of 7 begins and ends" in told


def test_without_events_a_wrong_clock_is_not_found_out_and_that_is_said(tmp_path: Path) -> None:
    capture = both(tmp_path, server_log(ALWAYS), gpu_csv(ALWAYS, ahead_s=300))
    assert offsets_s(capture) == [0, 300]
    assert sentences(capture)[0] == (
        "gpu.csv is joined with server.log by their wall clocks, both taken to be of one time "
        "zone, not checked by events (within ± 1.0 s)."
    )


def refusal(folder: Path, log: str, csv: str, **stated: float) -> str:
    with pytest.raises(InputError) as caught:
        both(folder, log, csv, **stated)
    said = str(caught.value)
    assert "\n" not in said
    return said


def test_without_events_ten_minutes_or_an_hour_apart_is_refused(tmp_path: Path) -> None:
    short = replace(ALWAYS, seconds=300.0)
    said = refusal(tmp_path, server_log(short), gpu_csv(short, ahead_s=600))
    assert said == (
        "server.log and gpu.csv do not overlap in time: server.log is from 06-17 12:00:00 to 06-17 "
        "12:05:00 (no year and no zone stated); gpu.csv is from 2025-06-17 12:10:00 to 2025-06-17 "
        "12:15:00 (no zone stated). If they are of one run, set a clock by hand: --offset "
        "gpu.csv=±SECONDS"
    )
    said = refusal(tmp_path, server_log(short), gpu_csv(short, ahead_s=3600))
    assert said.startswith(
        "server.log and gpu.csv share no begin or end of work, and a time zone is not stated: "
    )


@pytest.mark.parametrize("load", [LOAD, ALWAYS])
def test_a_record_of_another_day_is_refused(tmp_path: Path, load: Load) -> None:
    said = refusal(tmp_path, server_log(load), gpu_csv(load, ahead_s=86_400))
    assert said.startswith("server.log and gpu.csv do not overlap in time: server.log is from 06-1")


def test_another_load_at_the_same_time_is_refused(tmp_path: Path) -> None:
    other = Load(((100.0, 130.0, 3), (200.0, 300.0, 2)), 640.0)
    said = refusal(tmp_path, server_log(LOAD), gpu_csv(other))
    assert "server.log and gpu.csv do not fit: work begins and ends " in said
    assert "apart (at most 2.0 s is accepted)" in said


def test_an_offset_that_is_stated_settles_it(tmp_path: Path) -> None:
    log, csv = server_log(ALWAYS), gpu_csv(ALWAYS, ahead_s=3600)
    capture = both(tmp_path, log, csv, gpu_csv=-3600)
    assert offsets_s(capture) == [0, 0]
    assert sentences(capture)[0] == (
        "gpu.csv is joined with server.log as --offset says, not checked by events (within ± "
        "1.0 s)."
    )
    # Setting the log an hour ahead comes to the same.
    assert offsets_s(both(tmp_path, log, csv, server_log=3600)) == [0, 0]
    both(tmp_path, server_log(LOAD), gpu_csv(LOAD, ahead_s=90_000), gpu_csv=-90_000)


def test_an_offset_that_events_contradict_is_used_and_the_contradiction_said(
    tmp_path: Path,
) -> None:
    capture = both(tmp_path, server_log(LOAD), gpu_csv(LOAD), gpu_csv=30)
    assert offsets_s(capture) == [0, 30]
    assert "as --offset says, but work begins and ends " in sentences(capture)[0]


def test_an_offset_that_leaves_no_overlap_is_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, server_log(LOAD), gpu_csv(LOAD), gpu_csv=86_400)
    assert said.startswith("server.log and gpu.csv do not overlap in time with the --offset given")


def test_a_record_without_times_is_laid_beside_but_on_no_clock(tmp_path: Path) -> None:
    table = "# gpu    pwr  gtemp\n# Idx      W      C\n    0     43     48\n    0     44     48\n"
    capture = both(tmp_path, server_log(LOAD), table)
    assert capture.device_samples == ()  # power and temperature are of who knows when
    assert [s for s in sentences(capture) if s.startswith("Of nvidia-smi only")]
    said = refusal(tmp_path, server_log(LOAD), table, gpu_csv=5)
    assert said == (
        "gpu.csv: is output of nvidia-smi or DCGM of one moment or without times, so nothing puts "
        "it beside other files; give it alone"
    )
