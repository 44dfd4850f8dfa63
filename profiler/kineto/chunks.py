"""The text of a file in chunks, unpacked where it is gzip, up to where it breaks off."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

from stallscope.errors import InputError

CHUNK_BYTES = 1 << 20  # events of one fit a core's cache; 8 MiB reads a tenth slower
_GZIP = b"\x1f\x8b"
_GZIP_WINDOW = 31  # zlib's code for a gzip header and its largest window


def chunks_of(path: Path) -> Iterator[bytes]:
    """Yield the file's text; of a gzip stream that is cut or damaged, what comes before.

    Raises InputError where the file cannot be read or is empty.
    """
    try:
        with path.open("rb") as file:
            head = file.read(CHUNK_BYTES)
            if not head:
                raise InputError(f"{path} is empty; export the trace again")
            packed = head.startswith(_GZIP)
            rest = iter(lambda: file.read(CHUNK_BYTES), b"")
            yield from _unpacked(head, rest) if packed else _all(head, rest)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the name") from None


def _all(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    yield head
    yield from rest


def _unpacked(head: bytes, rest: Iterator[bytes]) -> Iterator[bytes]:
    unpacker = zlib.decompressobj(_GZIP_WINDOW)
    for packed in _all(head, rest):
        while packed:
            try:
                text = unpacker.decompress(packed, CHUNK_BYTES)
            except zlib.error:
                return
            if text:
                yield text
            packed = unpacker.unconsumed_tail
            if unpacker.eof:  # a gzip file may hold several members
                packed = unpacker.unused_data
                if packed[:2] not in (_GZIP, _GZIP[:1]):  # a chunk may end within the two
                    packed = b""
                unpacker = zlib.decompressobj(_GZIP_WINDOW)
    text = unpacker.flush()
    if text:
        yield text
