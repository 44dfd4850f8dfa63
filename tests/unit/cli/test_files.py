"""Files are written whole or not at all."""

from __future__ import annotations

import resource
from pathlib import Path

import pytest

from stallscope.errors import InputError, UsageError
from stallscope.files import check_target, write_text


def test_text_is_written_and_nothing_else_left(tmp_path: Path) -> None:
    write_text(tmp_path / "a.md", "größer\n")
    assert [p.name for p in tmp_path.iterdir()] == ["a.md"]
    assert (tmp_path / "a.md").read_bytes() == b"gr\xc3\xb6\xc3\x9fer\n"


def test_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "link.md").symlink_to(tmp_path / "real.md")
    write_text(tmp_path / "link.md", "new")
    assert (tmp_path / "link.md").is_symlink()
    assert (tmp_path / "real.md").read_text() == "new"


def test_the_file_to_write_is_the_one_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "link.md").symlink_to("other/real.md")
    target = tmp_path / "other" / "real.md"
    assert check_target(tmp_path / "link.md", force=False, option="-o") == target
    write_text(tmp_path / "link.md", "new")
    assert (tmp_path / "link.md").is_symlink()
    assert target.read_text() == "new"
    with pytest.raises(UsageError, match="-o .*link.md: exists; add --force"):
        check_target(tmp_path / "link.md", force=False, option="-o")


def test_old_file_survives_a_full_disk(tmp_path: Path) -> None:
    target = tmp_path / "a.md"
    target.write_text("old")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (4, hard)
    )  # bytes a file may hold: stands for the disk
    try:
        with pytest.raises(InputError, match="a.md: cannot write: File too large"):
            write_text(target, "longer")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_bytes_that_are_no_text_are_spelled_out(tmp_path: Path) -> None:
    write_text(tmp_path / "a.md", b"run-\xff.sqlite".decode("utf-8", "surrogateescape"))
    assert (tmp_path / "a.md").read_text() == r"run-\udcff.sqlite"


def test_existing_file_needs_force(tmp_path: Path) -> None:
    target = tmp_path / "a.md"
    target.write_text("old")
    with pytest.raises(UsageError, match="exists; add --force"):
        check_target(target, force=False, option="-o")
    check_target(target, force=True, option="-o")
    assert [p.read_text() for p in tmp_path.iterdir()] == ["old"]


def test_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        check_target(tmp_path, force=True, option="-o")


@pytest.mark.parametrize("folder", ["none", "file"])
def test_folder_that_takes_no_file_is_refused(tmp_path: Path, folder: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"^-o .*a.md: cannot write in .*: (No such|Not a) "):
        check_target(tmp_path / folder / "a.md", force=False, option="-o")
