"""What cannot be read as a JSON object is one line that names the file."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.profiler.checked_json import read_object


def problem(path: Path) -> str:
    with pytest.raises(InputError) as caught:
        read_object(path)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "not valid JSON: Expecting value"),
        (b'{"a": 1,}', "not valid JSON: "),
        (b"[1, 2]", "must hold one JSON object, not [1, 2]"),
        (b"\xff\xfe\x00", "not a text file"),
        (b"[" * 100_000, "not valid JSON: nested too deeply"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not valid JSON: Exceeds the limit"),
    ],
)
def test_bad_content_is_named(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(content)
    assert problem(file).startswith(f"{file}: {said}")


def test_missing_file_and_folder_are_named(tmp_path: Path) -> None:
    assert problem(tmp_path / "b.json") == f"{tmp_path}/b.json: no such file; check the path"
    assert problem(tmp_path) == f"{tmp_path}: cannot be read: Is a directory"


def test_byte_order_mark_is_skipped(tmp_path: Path) -> None:
    file = tmp_path / "a.json"
    file.write_bytes(b'\xef\xbb\xbf{"a": 1}')
    assert read_object(file).size("a") == 1
