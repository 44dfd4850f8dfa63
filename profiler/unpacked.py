"""The content of a gzip stream in chunks, up to where it breaks off: however much it unpacks to."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

GZIP = b"\x1f\x8b"
_WINDOW = 31  # zlib's code for a gzip header and its largest window


def unpacked(packed_chunks: Iterable[bytes], chunk_bytes: int) -> Iterator[bytes]:
    """Yield the content in chunks of no more than `chunk_bytes`.

    Of a stream that is cut or damaged, what comes before; a file may hold several members.
    """
    unpacker = zlib.decompressobj(_WINDOW)
    for packed in packed_chunks:
        while packed:
            try:
                text = unpacker.decompress(packed, chunk_bytes)
            except zlib.error:
                return
            if text:
                yield text
            packed = unpacker.unconsumed_tail
            if unpacker.eof:
                packed = unpacker.unused_data
                if packed[:2] not in (GZIP, GZIP[:1]):  # a chunk may end within the two
                    packed = b""
                unpacker = zlib.decompressobj(_WINDOW)
    text = unpacker.flush()
    if text:
        yield text
