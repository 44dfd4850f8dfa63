"""Tokens and authorities: where they come from, and that no message shows them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripted_server import CA

from stallscope.errors import InputError
from stallscope.profiler.attach.access import TOKEN_VARIABLE, Access, read_access


def test_the_file_wins_over_the_environment(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("from-file\n")
    environ = {TOKEN_VARIABLE: " from-environment "}
    assert read_access(file, None, environ).token == "from-file"
    assert read_access(None, None, environ).token == "from-environment"
    assert read_access(None, CA, {}) == Access(None, CA)
    assert "from-file" not in repr(read_access(file, None, {}))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"\n", "is empty; it should hold the token and nothing else"),
        (b"secret secret", "is no token: one word of ASCII is expected"),
        (b"secret\r\nX-Other: 1", "is no token: one word of ASCII is expected"),
        ("s\u00e9cret".encode(), "is no token: one word of ASCII is expected"),
        (b"\xff\xfesecret", "is no text"),
    ],
)
def test_what_is_no_token(tmp_path: Path, content: bytes, said: str) -> None:
    file = tmp_path / "token"
    file.write_bytes(content)
    with pytest.raises(InputError) as refused:
        read_access(file, None, {})
    assert str(refused.value) == f"--bearer-token-file {file}: {said}"


def test_files_that_are_not_there(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    with pytest.raises(InputError, match="--bearer-token-file .*gone: No such file or directory"):
        read_access(gone, None, {})
    with pytest.raises(InputError, match="--ca .*gone: No such file or directory"):
        read_access(None, gone, {})
    gone.write_text("no certificate")
    with pytest.raises(InputError, match="--ca .*gone: holds no certificate in PEM"):
        read_access(None, gone, {})
