"""Every source says in one form which wall time its time 0 is, and what it does not know of it."""

from __future__ import annotations

from calendar import timegm
from pathlib import Path

import pytest

from stallscope.profiler.capture import Capture
from stallscope.profiler.reading import read_input
from stallscope.profiler.recorder import Recorder
from stallscope.profiler.wall_clock import WallClock, wall_clock

S = 1_000_000_000
LINE = "Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, Running: 1 "
LINE += "reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%\n"


def at(*date: int) -> int:
    return timegm((*date, 0, 0, 0)[:6]) * S


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        # A line is stamped in whole seconds, without year and zone: 2001 stands in.
        (
            f"INFO 02-03 10:00:10 [loggers.py:1] Engine 000: {LINE}",
            WallClock(at(2001, 2, 3, 10, 0, 10), has_zone=False, has_year=False, error_ns=S),
        ),
        (
            "[2025-02-03 10:00:10 TP0] Prefill batch. #new-seq: 1, #new-token: 9, #cached-token: 0,"
            " token usage: 0.00, #running-req: 0, #queue-req: 0,\n",
            WallClock(at(2025, 2, 3, 10, 0, 10), has_zone=False, error_ns=S),
        ),
        (
            "timestamp, utilization.gpu [%]\n2026/01/03 15:36:53.507, 1 %\n",
            WallClock(at(2026, 1, 3, 15, 36, 53) + 507_000_000, has_zone=False),
        ),
        (
            "GPUId,TimeStampUs,Field,Values\n0,1700000000000000,DCGM_FI_DEV_GPU_UTIL,5\n",
            WallClock(1_700_000_000 * S),
        ),
        ("# gpu    pwr  gtemp\n# Idx      W      C\n    0     43     48\n", None),
    ],
    ids=["vllm", "sglang", "nvidia-smi", "dcgm", "dmon without time"],
)
def test_what_a_file_says_of_its_clock(tmp_path: Path, text: str, expected: WallClock) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    assert wall_clock(read_input(file)) == expected


def test_a_log_whose_clock_was_set_back_tells_no_wall_time(tmp_path: Path) -> None:
    file = tmp_path / "file"
    times = ("10:00:10", "11:00:10", "10:00:20")  # equal lines would be one that was pasted twice
    file.write_text("".join(f"INFO 02-03 {t} [loggers.py:1] Engine 000: {LINE}" for t in times))
    assert wall_clock(read_input(file)) is None


def test_a_recorder_reads_both_clocks_together(tmp_path: Path) -> None:
    Recorder(tmp_path / "run").close()
    capture = read_input(tmp_path / "run")
    clock = capture.meta["clock"]
    assert wall_clock(capture) == WallClock(clock["unix_ns"] - clock["monotonic_ns"])


@pytest.mark.parametrize(
    "said",
    [None, 7, {}, {"unix_ns": 1.5, "t_ns": 0}, {"unix_ns": 9}, {"unix_ns": None, "t_ns": None}],
)
def test_what_is_no_clock_is_none(said: object) -> None:
    assert wall_clock(Capture(meta={"clock": said})) is None


def test_a_clock_survives_its_form_in_a_capture() -> None:
    clock = WallClock(5 * S, has_zone=False, has_year=False, error_ns=7)
    assert wall_clock(Capture(meta={"clock": clock.meta()})) == clock
    # 40 on the wall when the capture's clock showed 15: 25 at its time 0.
    assert wall_clock(Capture(meta={"clock": {"unix_ns": 40, "t_ns": 15}})) == WallClock(25)
