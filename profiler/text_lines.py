"""The lines of a text file from anywhere, whatever wrote it."""

from __future__ import annotations

import codecs
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.opened import opened

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def decoded(content: bytes) -> str:
    """Decode UTF-8, or UTF-16 behind its mark, which is what PowerShell's > writes.

    Bytes that are neither become "�": a name in another encoding spoils no number.
    """
    if content.startswith(_UTF16):
        return content.decode("utf-16", errors="replace")
    return content.decode("utf-8-sig", errors="replace")


def text_lines(path: Path) -> list[str]:
    """Return the lines of a file with their ends, of a packed one too; raise InputError where it
    cannot be read.
    """
    try:
        with opened(path) as file:
            content = file.read()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from error
    return decoded(content).splitlines(keepends=True)
