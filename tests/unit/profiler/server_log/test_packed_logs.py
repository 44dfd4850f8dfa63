"""Logs as others keep them: packed by gzip, and as records of Docker's json-file driver."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

import pytest
from log_files import periodic, read, series

from stallscope.errors import InputError
from stallscope.profiler import opened
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.server_log import reader
from stallscope.profiler.server_log.reader import read_server_log
from stallscope.profiler.server_log.records import record_of
from stallscope.profiler.wall_clock import wall_clock

LINES = (periodic("02-03 10:00:10", 4, 2, 25.0), periodic("02-03 10:00:20", 5, 1, 50.0))
TIMES = ("2026-02-03T09:00:10.25Z", "2026-02-03T09:00:20.999999999Z")


def docker(lines: Sequence[str] = LINES, times: Sequence[str] = TIMES) -> str:
    records = (
        {"log": line, "stream": "stdout", "time": time}
        for line, time in zip(lines, times, strict=True)
    )
    return "".join(json.dumps(r, separators=(",", ":")) + "\n" for r in records)


def kind(folder: Path, content: bytes) -> InputKind | None:
    path = folder / "anything"
    path.write_bytes(content)
    return input_kind(path)


def test_a_packed_log_reads_as_the_plain_one(tmp_path: Path) -> None:
    plain = "".join(LINES).encode()
    found = [read(tmp_path, content) for content in (plain, gzip.compress(plain))]
    assert found[0] == found[1]
    several = gzip.compress(LINES[0].encode()) + gzip.compress(LINES[1].encode())
    assert read(tmp_path, several) == found[0]
    assert kind(tmp_path, several) is InputKind.SERVER_LOG
    assert kind(tmp_path, gzip.compress(b"a letter\n")) is None


def test_of_a_packed_log_that_is_cut_what_stands_before_counts(tmp_path: Path) -> None:
    filled = "".join(f"{i}: {zlib.crc32(b'%d' % i)}\n" for i in range(100_000))
    packed = gzip.compress(("".join(LINES) + filled).encode())
    assert read(tmp_path, packed[: len(packed) // 2]).engine_samples == (
        read(tmp_path, "".join(LINES)).engine_samples
    )


def test_a_packed_log_that_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opened.MOST_UNPACKED == 1 << 30
    monkeypatch.setattr(opened, "MOST_UNPACKED", 3 << 20)
    text = "".join(LINES)
    enough = (text + "x" * ((3 << 20) - len(text))).encode()
    assert read(tmp_path, gzip.compress(enough)).engine_samples
    with pytest.raises(InputError, match=r"server\.log unpacks to more than .* unpack it and give"):
        read(tmp_path, gzip.compress(enough + b"x"))
    read(tmp_path, enough + b"x")  # what is not packed may be as long as it is


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_docker_tells_the_time_with_its_year_and_zone(pack: type[bytes], tmp_path: Path) -> None:
    content = pack(docker().encode())
    capture = read(tmp_path, content)
    assert series(capture.engine_samples, "running") == [(-10, 4), (0, 5), (10, 5)]
    assert series(capture.engine_samples, "waiting") == [(-10, 2), (0, 1), (10, 1)]
    clock = wall_clock(capture)
    assert clock is not None
    assert clock.has_zone
    assert clock.has_year
    zero = datetime.fromisoformat("2026-02-03T09:00:10+00:00")
    assert clock.zero_ns == int(zero.timestamp()) * 10**9
    assert capture.sources[0].clock == "unix time, in seconds"
    assert kind(tmp_path, content) is InputKind.SERVER_LOG


def test_a_zone_of_its_own_is_taken_off(tmp_path: Path) -> None:
    # 09:00:10 − 02:30 = 06:30:10, and 06:30:05 + 00:00:30 … −05:00 → 11:30:05 of the other side.
    east, west = record_of(docker(LINES[:1], ["2026-02-03T09:00:10+02:30"])), None
    assert east is not None
    west = record_of(docker(LINES[:1], ["2026-02-03T01:30:10.5-05:00"]))
    assert west is not None
    assert east[1].seconds == west[1].seconds
    assert west[1].has_zone


@pytest.mark.parametrize(
    "record",
    [
        '{"log":"x","stream":"stdout","time":"yesterday"}',
        '{"log":"x","stream":"stdout","time":"2026-02-03T09:00:10"}',
        '{"log":7,"time":"2026-02-03T09:00:10Z"}',
        '{"log":"x","time":7}',
        '{"log":"x"',
        "[" * 100_000,
        "[]",
        "7",
    ],
)
def test_a_damaged_record_is_none(record: str) -> None:
    assert record_of(record) is None


def test_damaged_records_cost_no_others(tmp_path: Path) -> None:
    first, second = docker().splitlines(keepends=True)
    text = first + first[:-40] + "\n" + "INFO 02-03 17:00:00 Running: 3 reqs\n" + second
    assert series(read(tmp_path, text).engine_samples, "running") == [(-10, 4), (0, 5), (10, 5)]


def test_what_no_terminal_prints_is_left_out() -> None:
    found = record_of('{"log":"a\\ud800\\u0000b","time":"2026-02-03T09:00:10Z"}')
    assert found is not None
    assert found[0] == "a?b"


def test_other_records_in_docker_s_form_are_no_server_s_log(tmp_path: Path) -> None:
    assert kind(tmp_path, docker(["hello\n"], TIMES[:1]).encode()) is None
    with pytest.raises(InputError, match="no line of an inference server's"):
        read_server_log(tmp_path / "anything")


def test_no_mark_is_written_otherwise_within_json() -> None:
    assert all(json.dumps(mark) == f'"{mark}"' for mark in reader._MARKS)
    assert not any(sign in mark for mark in reader._MARKS for sign in "<>&")


UNIX = (1770109210.25, 1770109220.999)  # 2026-02-03T09:00:10 and 20, UTC
SHAPES = {
    "python-json-logger": [{"levelname": "INFO", "message": "", "timestamp": t} for t in TIMES],
    "google": [{"textPayload": "", "severity": "INFO", "timestamp": t} for t in TIMES],
    "loki": [{"labels": {"pod": "a"}, "line": "", "timestamp": t} for t in TIMES],
    "cloudwatch": [{"timestamp": int(t * 1e3), "message": ""} for t in UNIX],
    "zap": [{"level": "info", "ts": t, "msg": ""} for t in UNIX],
    "nanoseconds": [{"ts": int(t * 1e9), "msg": ""} for t in UNIX],
    "fluentd": [{"stream": "stdout", "log": "", "time": t} for t in TIMES],
}


@pytest.mark.parametrize("name", SHAPES)
def test_records_of_other_collectors_are_read(name: str, tmp_path: Path) -> None:
    text = ""
    for record, line in zip(SHAPES[name], LINES, strict=True):
        (key,) = (key for key, value in record.items() if value == "")
        bare = line.split("] ", 1)[1]  # loggers store the message without what leads it
        text += json.dumps({**record, key: bare}) + "\n"
    assert kind(tmp_path, text.encode()) is InputKind.SERVER_LOG
    capture = read(tmp_path, text)
    assert series(capture.engine_samples, "running") == [(-10, 4), (0, 5), (10, 5)]
    clock = wall_clock(capture)
    assert clock is not None
    assert clock.zero_ns == int(UNIX[0]) * 10**9
    assert clock.has_zone


def test_a_level_that_is_stored_apart_tells_advice_from_a_refusal(tmp_path: Path) -> None:
    said = "If you see torch.OutOfMemoryError: CUDA out of memory, lower it"
    records = [
        {"level": level, "message": text, "time": time}
        for level, text, time in (("INFO", LINES[0], TIMES[0]), ("WARNING", said, TIMES[1]))
    ]
    text = "".join(json.dumps(r) + "\n" for r in records)
    assert [e for e in read(tmp_path, text).events if e.kind == "oom"] == []
    assert [e for e in read(tmp_path, text.replace("WARNING", "ERROR")).events if e.kind == "oom"]


def test_a_time_without_a_zone_is_local_in_records_of_a_logger(tmp_path: Path) -> None:
    record = {"asctime": "2026-02-03 10:00:10,250", "levelname": "INFO", "message": LINES[0]}
    clock = wall_clock(read(tmp_path, json.dumps(record) + "\n"))
    assert clock is not None
    assert (clock.has_year, clock.has_zone) == (True, False)


def test_other_json_lines_are_no_records(tmp_path: Path) -> None:
    for record in ({"message": "Running: 4 reqs"}, {"time": TIMES[0]}, {"msg": 7, "ts": UNIX[0]}):
        assert kind(tmp_path, json.dumps(record).encode()) is None
