"""Nothing but a regular file is read or replaced, whoever asks, and a link stays a link."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.files import check_target, write_text
from stallscope.profiler.capture import Capture, Token
from stallscope.profiler.capture_file import is_capture, read_capture
from stallscope.profiler.capture_writer import write_capture
from stallscope.profiler.reading import read_input
from stallscope.profiler.recorder import Recorder

CAPTURE = Capture(tokens=(Token(1, 1),))


def record(path: Path) -> None:
    Recorder(path, force=True, sample_hz=0).close()


def check(path: Path) -> None:
    check_target(path, force=True, option="--capture")


WRITERS: tuple[Callable[[Path], object], ...] = (
    record,
    check,
    lambda path: write_text(path, "text"),
    lambda path: write_capture(path, CAPTURE, force=True),
)
READERS: tuple[Callable[[Path], object], ...] = (read_capture, read_input)


@pytest.fixture(params=["a pipe", "a socket"])
def special(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Path, str]]:
    path = tmp_path / "special"
    if request.param == "a pipe":
        os.mkfifo(path)
        yield path, request.param
        return
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        yield path, request.param


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize("behind_a_link", [False, True])
def test_what_is_no_file_is_not_replaced(
    special: tuple[Path, str], write: Callable[[Path], object], behind_a_link: bool
) -> None:
    path, kind = special
    named = path
    if behind_a_link:
        named = path.with_name("link")
        named.symlink_to(path)
    before = path.stat()
    with pytest.raises(InputError, match=f"{named.name}: is {kind}, not a regular file"):
        write(named)
    after = path.stat()
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)
    assert {file.name for file in path.parent.iterdir()} == {path.name, named.name}


@pytest.mark.parametrize("read", READERS)
def test_what_is_no_file_is_not_waited_for(
    special: tuple[Path, str], read: Callable[[Path], object]
) -> None:
    path, kind = special
    with pytest.raises(InputError, match=f"is {kind}, not a regular file; - reads stdin"):
        read(path)
    assert not is_capture(path)


def test_a_pipe_in_the_logs_place_is_not_removed(tmp_path: Path) -> None:
    path, wal = tmp_path / "a.sqlite", tmp_path / "a.sqlite-wal"
    write_capture(path, CAPTURE)
    os.mkfifo(wal)
    with pytest.raises(InputError, match="a.sqlite-wal: is a pipe"):
        Recorder(path, force=True)
    assert wal.is_fifo()
    wal.unlink()
    assert read_capture(path).tokens == CAPTURE.tokens


@pytest.mark.parametrize("there", [True, False])
def test_the_file_behind_a_link_is_replaced(tmp_path: Path, there: bool) -> None:
    (tmp_path / "other").mkdir()
    real, link = tmp_path / "other" / "real.sqlite", tmp_path / "link.sqlite"
    if there:
        write_capture(real, CAPTURE)
    link.symlink_to(real)
    with Recorder(link, force=there, sample_hz=0) as recording:
        recording.token(2, 2)
        assert {file.name for file in tmp_path.iterdir()} == {"other", "link.sqlite"}
    assert link.is_symlink()
    assert not real.is_symlink()
    assert read_capture(link).tokens == (Token(2, 2),)
    assert [file.name for file in real.parent.iterdir()] == ["real.sqlite"]


def test_a_live_capture_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    link = tmp_path / "link.sqlite"
    link.symlink_to(tmp_path / "other" / "real.sqlite")
    with Recorder(link, sample_hz=0) as recording:
        recording.token(2, 2)
        recording._writer._commit()  # what the thread does every 0.4 s
        capture = read_capture(link)
    assert capture.tokens == (Token(2, 2),)
    assert capture.cut is not None
    assert "-wal" not in capture.cut.note


def test_a_ring_of_links_is_refused(tmp_path: Path) -> None:
    ring = tmp_path / "ring"
    ring.symlink_to(ring)
    for write in WRITERS:
        with pytest.raises(InputError, match="ring: Too many levels of symbolic links"):
            write(ring)
    assert ring.is_symlink()


def test_an_unfinished_file_is_not_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stallscope.errors import CaptureError
    from stallscope.profiler import capture_create

    monkeypatch.setattr(capture_create, "META_SQL", "CREATE nonsense")
    with pytest.raises(CaptureError, match="cannot be written"):
        Recorder(tmp_path / "a.sqlite")
    assert list(tmp_path.iterdir()) == []
