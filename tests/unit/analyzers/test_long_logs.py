"""What reading and judging a server's log costs as it grows: in proportion, whatever its clock."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from types import FrameType

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.server_log.reader import read_server_log

LINE = (
    "INFO {at} [loggers.py:257] Engine 000: Avg prompt throughput: 2500.0 tokens/s, Avg generation "
    "throughput: 800.0 tokens/s, Running: {running} reqs, Waiting: {waiting} reqs, GPU KV cache "
    "usage: {used}%, Prefix cache hit rate: 86.6%\n"
)


def stamps(every: timedelta) -> Iterator[str]:
    """Yield stamps without a year: those of every 100 days pass a new year every four lines."""
    at = datetime(2023, 2, 4, 7, 26, 12)
    while True:
        yield f"{at:%m-%d %H:%M:%S}"
        at += every


def one_day() -> Iterator[str]:
    """Yield the stamps of one day again and again, as a clock does that is set back."""
    while True:
        for i in range(144):
            yield f"02-04 {i // 6:02}:{i % 6 * 10:02}:00"


def calls(path: Path) -> int:
    """Count the calls of functions, ours and C's, from a log to its diagnosis."""
    count = 0

    def seen(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(seen)
    try:
        diagnose(read_server_log(path))
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "clock",
    [lambda: stamps(timedelta(seconds=10)), lambda: stamps(timedelta(days=100)), one_day],
    ids=["days", "years", "set back"],
)
def test_four_times_the_log_is_four_times_the_work(clock: object, tmp_path: Path) -> None:
    assert callable(clock)
    counts = []
    for lines in (500, 500, 2000):  # the first also loads what is loaded on first use
        path = tmp_path / f"{lines}.log"
        with path.open("w") as file:
            for i, at in zip(range(lines), clock(), strict=False):
                queue = {"running": 60 + i % 5, "waiting": i % 21, "used": 30 + i % 67}
                file.write(LINE.format(at=at, **queue))
        counts.append(calls(path))
    assert counts[2] < 4.4 * counts[1]
