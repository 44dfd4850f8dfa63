"""The body of an answer, read piece by piece so that no server can fill the memory."""

from __future__ import annotations

import http.client
import zlib

_PIECE = 1 << 16
_GZIP = 31  # zlib's number for a gzip header


class BodyRefused(Exception):
    """A body that no other try would change; the message says why."""


def read_body(response: http.client.HTTPResponse, most_bytes: int) -> bytes:
    """Return the whole body, unpacked. Raises BodyRefused beyond `most_bytes` or for an encoding
    that is not known, and http.client.IncompleteRead where it broke off."""
    encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise BodyRefused(f"the answer is encoded in {encoding[:20]!r}, which nobody asked for")
    if (response.length or 0) > most_bytes:
        raise _too_large(most_bytes, f"{response.length:,} bytes")
    unpack = None if encoding == "identity" else zlib.decompressobj(_GZIP)
    pieces: list[bytes] = []
    size = 0
    while piece := response.read(_PIECE):
        if unpack is not None:
            piece = _unpacked(unpack, piece, most_bytes - size + 1)
        pieces.append(piece)
        size += len(piece)
        if size > most_bytes:
            raise _too_large(most_bytes, "more than that")
    if response.length:  # read(n) ends without a word where the connection does
        raise http.client.IncompleteRead(b"", response.length)
    if unpack is not None and not unpack.eof:
        raise http.client.IncompleteRead(b"")
    return b"".join(pieces)


def _unpacked(unpack: zlib._Decompress, piece: bytes, most: int) -> bytes:
    try:
        return unpack.decompress(piece, most)
    except zlib.error as error:
        raise BodyRefused("the answer says it is gzip, and is not") from error


def _too_large(most_bytes: int, told: str) -> BodyRefused:
    return BodyRefused(f"the answer has {told}; the most is {most_bytes // 2**20} MiB")
