"""Say in words what a file is, from its first bytes."""

from __future__ import annotations

import re
from pathlib import Path

from stallscope.errors import InputError

SIGNATURES = (
    (b"SQLite format 3\0", "an SQLite database that stallscope did not write"),
    (b"\x1f\x8b", "a gzip file"),
    (b"PK\x03\x04", "a zip file"),
    (b"%PDF", "a PDF"),
)
JSON_START = re.compile(r"\s*(\{|\[\s*[\[{\"\d\]-])")  # not a table of TOML or INI
SAMPLE_BYTES = 4096
UNKNOWN = "a binary file of no kind known here"


def kind_of(path: Path) -> str:
    """Return what the file seems to be; raise InputError if there is nothing to read."""
    if path.is_dir():
        raise InputError(f"{path}: is a folder; name a file in it")
    try:
        with path.open("rb") as file:
            head = file.read(SAMPLE_BYTES)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error
    return next((kind for start, kind in SIGNATURES if head.startswith(start)), plain_kind(head))


def plain_kind(head: bytes) -> str:
    """Tell JSON, other text and the rest apart."""
    if not head:
        return "an empty file"
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        text = head[: error.start].decode("utf-8")
        if error.start < len(head) - 3:  # more than a letter cut at the end of the sample
            return UNKNOWN
    if "\0" in text:
        return UNKNOWN
    return "a JSON file" if JSON_START.match(text) else "a text file"
