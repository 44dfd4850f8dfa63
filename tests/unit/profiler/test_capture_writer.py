"""The writer: never over another file unasked, and no failure stays in its thread."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from stallscope.errors import CaptureError, InputError
from stallscope.profiler import capture_create
from stallscope.profiler.capture import Capture, Cut, Event, Token
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.capture_writer import CaptureWriter, write_capture

OLD = Capture(tokens=(Token(1, 1),))
NEW = Capture(tokens=(Token(2, 2),))


def committed_tokens(path: Path) -> int:
    """Count what another process would see now."""
    with closing(sqlite3.connect(path)) as db:
        (count,) = db.execute("SELECT count(*) FROM tokens").fetchone()
    return int(count)


def test_an_existing_file_is_refused_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    path.write_text("mine")
    with pytest.raises(InputError, match="exists; choose another name, or force=True"):
        CaptureWriter(path)
    assert path.read_text() == "mine"


def test_force_replaces_the_file_at_once(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    write_capture(path, OLD)
    writer = CaptureWriter(path, force=True)
    assert committed_tokens(path) == 0
    writer.put(Token(2, 2))
    writer.close()
    assert read_capture(path).tokens == NEW.tokens
    assert [file.name for file in tmp_path.iterdir()] == ["a.sqlite"]


def test_force_without_a_former_file_creates_one(tmp_path: Path) -> None:
    write_capture(tmp_path / "a.sqlite", NEW, force=True)
    assert read_capture(tmp_path / "a.sqlite").tokens == NEW.tokens


@pytest.mark.parametrize("former_is_there", [True, False])
def test_a_former_runs_wal_is_not_replayed_into_the_new_file(
    tmp_path: Path, former_is_there: bool
) -> None:
    path, cut = tmp_path / "a.sqlite", tmp_path / "cut.sqlite"
    writer = CaptureWriter(cut)
    writer.put(Token(1, 1))
    while committed_tokens(cut) == 0:
        time.sleep(0.01)
    for suffix in ("", "-wal"):
        (tmp_path / f"a.sqlite{suffix}").write_bytes(Path(f"{cut}{suffix}").read_bytes())
    writer.close()
    assert read_capture(path).tokens == OLD.tokens  # the stray -wal does hold the row
    if not former_is_there:
        path.unlink()
    write_capture(path, NEW, force=former_is_there)
    assert read_capture(path).tokens == NEW.tokens


def test_a_failing_force_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.sqlite"
    write_capture(path, OLD)
    monkeypatch.setattr(capture_create, "META_SQL", "CREATE nonsense")
    with pytest.raises(CaptureError, match="cannot be written"):
        CaptureWriter(path, force=True)
    assert read_capture(path).tokens == OLD.tokens
    assert [file.name for file in tmp_path.iterdir()] == ["a.sqlite"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(CaptureError, match=r"nowhere/a.sqlite cannot be written \(No such file"):
        CaptureWriter(tmp_path / "nowhere" / "a.sqlite")


def test_rows_are_committed_while_the_run_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    writer = CaptureWriter(path)
    writer.put(Token(1, 1))
    put_s = time.monotonic()
    while committed_tokens(path) == 0:
        time.sleep(0.005)
    assert time.monotonic() - put_s < 1.0
    assert (tmp_path / "a.sqlite-wal").exists()
    writer.close()


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (Token(2**63, 1), "int too large"),
        (Event(1, "probe", None, {"what": object()}), "not JSON serializable"),
        (Token(None, 1), "NOT NULL constraint failed: tokens.request"),  # type: ignore[arg-type]
    ],
)
def test_a_row_that_cannot_be_stored_is_told_at_the_next_put_and_at_close(
    tmp_path: Path, row: Token | Event, reason: str
) -> None:
    writer = CaptureWriter(tmp_path / "a.sqlite")
    writer.put(row)
    deadline_s = time.monotonic() + 10
    with pytest.raises(CaptureError, match=reason):  # noqa: PT012 (the thread takes its time)
        while time.monotonic() < deadline_s:
            writer.put(Token(1, 1))
            time.sleep(0.01)
    with pytest.raises(CaptureError, match=reason):
        writer.close()
    writer.close()  # told once


def test_close_itself_tells_of_a_row_that_cannot_be_stored(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "a.sqlite")
    writer.put(Token(2**63, 1))
    with pytest.raises(CaptureError, match="int too large"):
        writer.close()


def test_nothing_can_be_put_after_close(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "a.sqlite")
    writer.close()
    with pytest.raises(CaptureError, match="is closed"):
        writer.put(Token(1, 1))
    with pytest.raises(CaptureError, match="is closed"):
        writer.set_meta("flags", {})


FILLS_ITS_DISK = """
import resource, sys, time
from stallscope.errors import CaptureError
from stallscope.profiler.capture import Token
from stallscope.profiler.capture_writer import CaptureWriter

writer = CaptureWriter(sys.argv[1])
writer.put(Token(-1, 1))
time.sleep(0.6)
resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    for number in range(100):
        for _ in range(1000):
            writer.put(Token(number, number))
        time.sleep(0.05)
except CaptureError as error:
    print(error)
"""


def test_a_full_disk_is_told_and_what_was_committed_stays(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", FILLS_ITS_DISK, str(path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{path} cannot be written" in done.stdout
    assert "check the folder, its rights and the disk's room" in done.stdout
    assert done.stderr == ""
    back = read_capture(path)
    assert Token(-1, 1) in back.tokens
    assert back.cut is not None


# A burst from the first moment on, on a disk with room for `argv[2]` bytes.
BURST = """
import resource, sys
from stallscope.errors import CaptureError
from stallscope.profiler.capture import Token
from stallscope.profiler.capture_writer import CaptureWriter

writer = CaptureWriter(sys.argv[1])
writer.set_meta("tool", {"name": "test"})
for number in range(200_000):
    writer.put(Token(number, number))
room = int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
try:
    writer.close()
except CaptureError as error:
    print(error)
"""


def after_burst(path: Path, room: int) -> Capture:
    done = subprocess.run(
        [sys.executable, "-c", BURST, str(path), str(room)], capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{path} cannot be written" in done.stdout
    return read_capture(path)


def test_of_a_burst_that_fills_the_disk_the_first_rows_stay(tmp_path: Path) -> None:
    back = after_burst(tmp_path / "a.sqlite", 1_000_000)
    # 200,000 tokens take 3 MB and more; what fits into 1 MB is kept, in order and from the first.
    assert 5_000 <= len(back.tokens) < 200_000
    assert back.tokens == tuple(Token(number, number) for number in range(len(back.tokens)))
    assert back.meta["tool"] == {"name": "test"}
    assert back.cut is not None


def test_a_disk_that_takes_nothing_is_told_from_a_lost_log(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    back = after_burst(path, 50_000)  # the schema has 40 kB
    assert (back.tokens, back.meta) == ((), {})
    assert back.cut == Cut(0, "cut before the first rows were written: nothing was recorded")


def test_without_wal_the_capture_is_written_in_a_rollback_journal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(path: Path) -> sqlite3.Connection:
        # SQLite's own way of locking where nothing else works; like a network drive it has no
        # shared memory, and so no WAL.
        return sqlite3.connect(
            f"{path.as_uri()}?vfs=unix-dotfile",
            uri=True,
            isolation_level=None,
            check_same_thread=False,
        )

    monkeypatch.setattr(capture_create, "connect", connect)
    path = tmp_path / "a.sqlite"
    writer = CaptureWriter(path)
    writer.put(Token(2, 2))
    deadline_s = time.monotonic() + 10
    while time.monotonic() < deadline_s and not (cut := read_capture(path)).tokens:
        time.sleep(0.05)
    assert cut.tokens == NEW.tokens
    assert cut.cut is not None
    assert "-wal" not in cut.cut.note
    assert not (tmp_path / "a.sqlite-wal").exists()
    writer.close()
    assert read_capture(path).cut is None
    assert [file.name for file in tmp_path.iterdir()] == ["a.sqlite"]
