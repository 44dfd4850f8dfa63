"""Logs behind the time of a container's runtime: CRI's files, and `-t` of docker and kubectl."""

from __future__ import annotations

import gzip
from datetime import datetime
from pathlib import Path

import pytest
from log_files import periodic, read, series

from stallscope.profiler.capture import Capture
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.reading import read_input
from stallscope.profiler.runtime_lines import is_stamped, stamped, whole_lines
from stallscope.profiler.wall_clock import wall_clock

LINES = (periodic("02-03 10:00:10", 4, 2, 25.0), periodic("02-03 10:00:20", 5, 1, 50.0))
TIMES = ("2026-02-03T09:00:10.250000001Z", "2026-02-03T09:00:20.999999999Z")
TAGS = [" ", " stdout F ", " stderr F ", " stdout F:x "]


def behind(tag: str, lines: tuple[str, ...] = LINES, times: tuple[str, ...] = TIMES) -> str:
    return "".join(f"{time}{tag}{line}" for time, line in zip(times, lines, strict=True))


@pytest.mark.parametrize("tag", TAGS)
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_the_runtime_tells_the_time_with_its_year_and_zone(
    tag: str, pack: type[bytes], tmp_path: Path
) -> None:
    content = pack(behind(tag).encode())
    capture = read(tmp_path, content)
    assert series(capture.engine_samples, "running") == [(-10, 4), (0, 5), (10, 5)]
    clock = wall_clock(capture)
    assert clock is not None
    assert (clock.has_zone, clock.has_year) == (True, True)
    zero = datetime.fromisoformat("2026-02-03T09:00:10+00:00")
    assert clock.zero_ns == int(zero.timestamp()) * 10**9
    (tmp_path / "anything").write_bytes(content)
    assert input_kind(tmp_path / "anything") is InputKind.SERVER_LOG
    assert read_input(tmp_path / "anything").engine_samples == capture.engine_samples


def test_a_line_without_a_time_has_that_of_the_line_before(tmp_path: Path) -> None:
    # Its own stamp is of another zone: ten o'clock there is nine o'clock in UTC.
    lost = periodic("02-03 10:00:15", 9, 0, 30.0)
    first, second = behind(" ").splitlines(keepends=True)
    capture = read(tmp_path, first + lost + second)
    running = [v for _, v in series(capture.engine_samples, "running")]
    assert (9 in running, max(t for t, _ in series(capture.engine_samples, "running"))) == (
        True,
        10,
    )


def test_pieces_of_a_long_line_are_put_together() -> None:
    time = "2026-02-03T09:00:10.123456789Z"
    text = (
        f"{time} stdout P one \n{time} stdout P two \n{time} stdout F three\n"
        f"{time} stderr P x\n{time} stdout F apart\n{time} stdout F P is no tag\n"
    )
    assert whole_lines(text.encode()).decode() == (
        f"{time} stdout F one two three\n"
        f"{time} stderr P x\n{time} stdout F apart\n{time} stdout F P is no tag\n"
    )


def test_a_line_that_the_runtime_cut_is_read(tmp_path: Path) -> None:
    at = LINES[1].index("Running") + 4
    cut = f"{TIMES[1]} stdout P {LINES[1][:at]}\n{TIMES[1]} stdout F {LINES[1][at:]}"
    capture = read(tmp_path, f"{TIMES[0]} stdout F {LINES[0]}{cut}")
    assert series(capture.engine_samples, "running") == [(-10, 4), (0, 5), (10, 5)]


def refused(capture: Capture) -> list[object]:
    return [e.data["bytes"] for e in capture.events if e.kind == "oom"]


@pytest.mark.parametrize("tag", TAGS)
def test_a_refused_allocation_alone_is_found(tag: str, tmp_path: Path) -> None:
    error = (
        "Traceback (most recent call last):\n",
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
    )
    path = tmp_path / "file"
    path.write_text(behind(tag, error))
    assert input_kind(path) is InputKind.SERVER_LOG
    assert refused(read_input(path)) == [2 * 2**30]


BLOCK = """\
============ Serving Benchmark Result ============
Successful requests:                     100
Benchmark duration (s):                  955.00
Total input tokens:                      100000
Total generated tokens:                  700000
Mean TTFT (ms):                          700.00
==================================================
"""


def test_a_benchmark_that_ran_in_a_pod_is_read(tmp_path: Path) -> None:
    block = "".join(f"{TIMES[0]} stdout F {line}" for line in BLOCK.splitlines(keepends=True))
    path = tmp_path / "file"
    path.write_text(block)
    (trial,) = read_input(path).meta["benchmark"]["trials"]
    assert (trial["completed"], trial["source"]) == (100, str(path))
    path.write_text(behind(" stdout F ") + block)
    capture = read_input(path)
    assert capture.meta["printed_benchmark"]["trials"][0]["completed"] == 100
    assert capture.sources[0].clock == "unix time, in seconds"


def test_other_lines_with_dates_are_not_taken_for_it() -> None:
    for line in ("2026-02-03 10:00:10 INFO x", "[2026-02-03T09:00:10Z] x", "2026-02-03T09:00:10 x"):
        assert stamped(line) is None
    found = stamped("2026-02-03T09:00:10Z stdout F\n")  # an empty line
    assert (found and found.text) == "\n"
    assert not is_stamped([])
    assert not is_stamped(["hello\n", "2026-02-03T09:00:10Z x\n"])  # half is not most
