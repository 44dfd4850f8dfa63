"""A file's content as bytes, unpacked where it is gzip: however much that unpacks to."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.errors import InputError
from stallscope.profiler.unpacked import GZIP, unpacked

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_BLOCK = 1 << 20
MOST_UNPACKED = 1 << 30  # bytes: a gzip file of a megabyte may be one of a thousand of zeros


@contextmanager
def opened(path: Path) -> Iterator[io.BufferedReader]:
    """Open a file to be read once, from its begin; of a packed one that is cut, what is whole.

    Reading raises OSError, and InputError where more than MOST_UNPACKED comes out of it.
    """
    with path.open("rb") as file:
        if not file.peek(len(GZIP)).startswith(GZIP):
            yield file
            return
        chunks = unpacked(iter(lambda: file.read(_BLOCK), b""), _BLOCK)
        yield io.BufferedReader(_Chunks(_bounded(path, chunks)), _BLOCK)


class _Chunks(io.RawIOBase):
    """A file of chunks."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        target = memoryview(buffer).cast("B")
        if not self._rest:
            self._rest = memoryview(next(self._chunks, b""))
        count = min(len(target), len(self._rest))
        target[:count], self._rest = self._rest[:count], self._rest[count:]
        return count


def _bounded(path: Path, chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield what a packed file holds, as far as it is no trap for the memory of its reader."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MOST_UNPACKED:
            raise InputError(
                f"{path} unpacks to more than {MOST_UNPACKED >> 30} GiB; unpack it and give the "
                "part in question"
            )
        yield chunk
