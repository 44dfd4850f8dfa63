"""Notes: the rows made of them are the same before the end of a run, at it, and after a kill."""

from __future__ import annotations

import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import msgspec
import pytest

from stallscope.errors import CaptureError
from stallscope.profiler import capture_writer, journal
from stallscope.profiler.capture import Capture, DeviceSample, Event, Step, Token
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.capture_writer import CaptureWriter, write_capture
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.notes import Note
from stallscope.profiler.recorder import Recorder

OWN = Step(2, 0, 5, 6, None, None, "mixed", False, 1, 2, 3, 4, 0, 1, 2, 3, 7, 4, "kv", 0, 1, 2)
# A step from 1,000 to 1,100 ns, 60 of them in the forward call, of 8 requests over 5120 tokens.
TIMED = Step(
    0, 0, 1_000, 1_100, 60, 40, "decode", False, 0, 0, 8, 5120, 1, 8, 30, 40, 5120, 8, None
)
ROWS = Capture(
    steps=(TIMED, OWN),
    tokens=(Token(1, 50), Token(3, 1_100), Token(2, 1_100)),
    events=(
        Event(1_100, "kv_append", None, {"tokens": 8, "bytes": 96}),
        Event(1_100, "kv_read", None, {"tokens": 5120, "bytes": 61_440}),
        Event(1_100, "kv_free", 3, {"blocks": 2}),
        Event(1_100, "probe", None, {"share": 0.5, "what": "é"}),
        Event(1_100, "load", None, {"n": 2**70, "below": -1}),
    ),
)


def record(recording: Recorder, advance: list[int]) -> None:
    recording.set_engine_state(waiting=1, running=8, kv_used_bytes=30, kv_total_bytes=40)
    with recording.decode(8, context_tokens=5120) as step:
        advance[0] += 100
        step.add_forward(60)
    recording.step(OWN)
    recording.token(3)
    recording.token(2)
    recording.token(1, 50)
    recording.kv_traffic(8, 5120, 12)
    recording.event("kv_free", 3, blocks=2)
    recording.event("probe", share=0.5, what="é")
    recording.event("load", n=2**70, below=-1)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


@pytest.fixture(autouse=True)
def _commits_are_the_tests_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(capture_writer, "COMMIT_INTERVAL_S", 1000)


def rows_of(capture: Capture) -> tuple[object, ...]:
    return capture.steps, capture.tokens, capture.events


def layout(path: Path) -> tuple[int, bool]:
    """Return the file's format, and whether it has a journal."""
    with closing(sqlite3.connect(path)) as db:
        (version,) = db.execute("PRAGMA user_version").fetchone()
        names = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
    return version, "journal" in names


def test_a_live_capture_and_a_closed_one_have_the_same_rows(path: Path) -> None:
    now = [1_000]
    with Recorder(path, clock=lambda: now[0], sample_hz=0) as recording:
        record(recording, now)
        recording._writer._commit()
        live = read_capture(path)
        assert layout(path) == (4, True)
    closed = read_capture(path)
    assert rows_of(live) == rows_of(closed) == rows_of(ROWS)
    assert (live.cut is None, closed.cut) == (False, None)
    assert layout(path) == (2, False)  # what an older stallscope reads too


class Thrice:
    """Three readings, the second with a whole number for a value, the third with no name."""

    name = "thrice"
    ROWS = (
        DeviceSample(5, "x", "first", 0.5, "W"),
        DeviceSample(6, "x", "second", 2, "W"),
        DeviceSample(7, "x", None, 3.0, "W"),  # type: ignore[arg-type]
    )

    def __init__(self, rows: int) -> None:
        self._left = list(self.ROWS[:rows])
        self.done = threading.Event()

    def probe(self) -> tuple[NotObservable, ...]:
        return ()

    def sample(self, _: int) -> list[DeviceSample]:
        now, self._left = self._left, []
        if not now:
            self.done.set()
        return now


def test_a_samplers_readings_are_notes_where_they_are_plain(path: Path) -> None:
    with Recorder(path, clock=lambda: 1, sample_hz=1) as recording:
        recording.set_engine_state(waiting=3)
        recording._writer._commit()
        sampler = Thrice(2)
        recording.sample(sampler, hz=100)
        assert sampler.done.wait(10)
        recording._writer._commit()
        live = [row for row in read_capture(path).device_samples if row.device == "x"]
        with closing(sqlite3.connect(path)) as db:
            in_table = db.execute("SELECT name FROM device_samples").fetchall()
    assert sorted(live) == list(Thrice.ROWS[:2])
    assert in_table == [("second",)]
    closed = [row for row in read_capture(path).device_samples if row.device == "x"]
    assert closed == live


def test_a_samplers_broken_reading_takes_no_other_with_it(path: Path) -> None:
    sampler = Thrice(3)
    recording = Recorder(path, clock=lambda: 1, sample_hz=0)
    recording.sample(sampler, hz=100)
    assert sampler.done.wait(10)
    with pytest.raises(CaptureError, match="a row cannot be written: .*NOT NULL"):
        recording.close()
    assert read_capture(path).device_samples == Thrice.ROWS[:2]


def test_rows_in_the_tables_and_in_the_journal_are_read_in_order(path: Path) -> None:
    with Recorder(path, sample_hz=0) as recording:
        recording.token(1, 10)
        recording.token(2, 5)
        recording.add(Token(3, 7))
        recording.add(Token(4, 10))
        recording._writer._commit()
        live = read_capture(path).tokens
    # At equal times the table's row comes first: it has been inserted by the end of the run.
    assert live == (Token(2, 5), Token(3, 7), Token(4, 10), Token(1, 10))
    assert read_capture(path).tokens == live


def test_a_capture_of_rows_alone_never_has_a_journal(path: Path) -> None:
    write_capture(path, ROWS)
    assert layout(path) == (2, False)
    writer = CaptureWriter(path, force=True)
    writer.put(Token(1, 1))
    writer._commit()
    assert layout(path) == (2, False)
    writer.close()


# Killed in the second transaction of the move, of three commits with a token each.
KILLED = """
import os, signal, sys
from stallscope.profiler import capture_writer, journal
from stallscope.profiler.recorder import Recorder

capture_writer.COMMIT_INTERVAL_S = 1000
insert_rows = journal.insert_rows
journal._BLOBS = 1

def insert_and_die(db, rows):
    insert_rows(db, rows)
    if rows[0].request == 2:
        os.kill(os.getpid(), signal.SIGKILL)

journal.insert_rows = insert_and_die
recorder = Recorder(sys.argv[1], sample_hz=0)
for number in (1, 2, 3):
    recorder.token(number, number)
    recorder._writer._commit()
recorder.close()
"""


def test_a_run_killed_while_its_notes_move_loses_none(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)])
    assert done.returncode == -signal.SIGKILL
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM tokens").fetchone() == (1,)
        assert db.execute("SELECT count(*) FROM journal").fetchone() == (2,)
    capture = read_capture(path)
    assert capture.tokens == (Token(1, 1), Token(2, 2), Token(3, 3))
    assert capture.cut is None  # it had ended


# Room for the notes, of 13 bytes a token, and not for the rows, of 20 and more, beside them.
FILLS_ITS_DISK = """
import resource, sys
from stallscope.errors import CaptureError
from stallscope.profiler import capture_writer
from stallscope.profiler.recorder import Recorder

capture_writer.COMMIT_INTERVAL_S = 1000
recorder = Recorder(sys.argv[1], sample_hz=0)
for number in range(100_000):
    recorder.token(number, number)
recorder._writer._commit()
room = 1_600_000
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
try:
    recorder.close()
except CaptureError as error:
    print(error)
"""


def test_notes_that_find_no_room_in_the_tables_are_told_and_kept(path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FILLS_ITS_DISK, str(path)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{path} cannot be written" in done.stdout
    assert read_capture(path).tokens == tuple(Token(n, n) for n in range(100_000))


def put_down(path: Path, notes: Sequence[Note]) -> None:
    """Leave notes in a capture as a run that was cut leaves them."""
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        journal.append(db, notes)


WORK = ("decode", False, 0, 0, 1, 2, 2, 1)
STATE = (None, None, None, None)


NOTES: tuple[Note, ...] = (
    ("timed", 0, 1_000, 1_100, 60, WORK, STATE),
    ("step", OWN),
    ("token", 3, 1_100),
    ("kv", 1_100, 8, 5120, 12),
    ("event", 1_100, "kv_free", 3, {"blocks": 2}),
    ("text", 1_100, "probe", None, '{"share": 0.5}'),
)


def test_notes_of_a_closed_capture_are_read_too(path: Path) -> None:
    write_capture(path, Capture())
    put_down(path, NOTES)
    capture = read_capture(path)
    assert [len(rows) for rows in (capture.steps, capture.tokens, capture.events)] == [2, 1, 4]


@pytest.mark.parametrize(
    ("notes", "reason"),
    [
        (b"\xc1", "MessagePack data is malformed"),
        ("text", "truncated"),
        ([("nonsense", 1)], "Invalid value 'nonsense'"),
        ([("token", 1)], "Expected `array` of "),
        ([("token", 1, 2, 3)], "Expected `array` of "),
        ([("token", "1", 2)], "Expected `int`, got `str`"),
        ([("token", 2**63, 2)], "a number of more than 64 bits in Token"),
        ([("timed", 0, -(2**63), 2**62, 1, WORK, STATE)], "a number of more than 64 bits in Step"),
        ([("timed", 0, 1, 2, 1, WORK[:7], STATE)], "Expected `array` of "),
        ([("step", [1, 2])], "Expected `array` of "),
        ([("event", 1, "x", None, {"a": [1]})], "Expected `int`, got `array`"),
        ([("text", 1, "x", None, "[]")], "data is not a mapping"),
        ([("text", 1, "x", None, "{")], "Expecting property name"),
    ],
)
def test_a_journal_that_holds_no_notes_is_refused(path: Path, notes: object, reason: str) -> None:
    write_capture(path, Capture(cut=None))
    blob = notes if isinstance(notes, bytes | str) else msgspec.msgpack.encode(notes)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("CREATE TABLE journal (id INTEGER PRIMARY KEY, notes BLOB NOT NULL)")
        db.execute("INSERT INTO journal (notes) VALUES (?)", (blob,))
    with pytest.raises(CaptureError, match="is damaged or truncated") as refused:
        read_capture(path)
    assert "table journal, row 1: " in str(refused.value)
    assert reason in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_clock_that_turns_strange_is_told_at_the_end(path: Path) -> None:
    readings = [1, 1, 1.5]
    recording = Recorder(path, clock=lambda: readings.pop(0), sample_hz=0)  # type: ignore[arg-type,return-value]
    recording.token(1, 1)
    recording.token(2)
    with pytest.raises(CaptureError, match="a note is no row: Expected `int`, got `float`"):
        recording.close()


def test_a_value_that_cannot_be_packed_is_told_and_the_others_are_kept(path: Path) -> None:
    readings: list[object] = [1, 1, object()]
    recording = Recorder(path, clock=lambda: readings.pop(0), sample_hz=0)  # type: ignore[arg-type,return-value]
    recording.token(1, 1)
    recording.token(2)
    recording.token(3, 3)
    with pytest.raises(CaptureError, match="a row cannot be written: TypeError"):
        recording.close()
    assert read_capture(path).tokens == (Token(1, 1), Token(3, 3))


def test_a_copy_without_its_wal_is_read_as_far_as_it_goes(path: Path, tmp_path: Path) -> None:
    recording = Recorder(path, sample_hz=0)
    recording.token(1, 1)
    recording._writer._commit()
    with closing(sqlite3.connect(path)) as db:
        db.execute("PRAGMA wal_checkpoint")
    (tmp_path / "sent").mkdir()
    copy = Path(shutil.copy(path, tmp_path / "sent"))
    recording.close()
    capture = read_capture(copy)
    assert capture.tokens == (Token(1, 1),)
    assert capture.cut is not None
    assert "its -wal file is missing" in capture.cut.note
    assert [file.name for file in copy.parent.iterdir()] == [path.name]
