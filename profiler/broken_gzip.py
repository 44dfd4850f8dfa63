"""Whether a gzip file is whole: of one that is cut, its readers see what comes before."""

from __future__ import annotations

import zlib
from dataclasses import replace
from pathlib import Path

from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.unpacked import GZIP

_BLOCK = 1 << 20
_WINDOW = 31  # zlib's code for a gzip header and its largest window


def how_broken(path: Path) -> str | None:
    """Return "cut" or "damaged"; None for a whole file, and for what is no gzip."""
    unpacker, is_begun = zlib.decompressobj(_WINDOW), False
    with path.open("rb") as file:
        packed = file.read(_BLOCK)
        if not packed.startswith(GZIP):
            return None
        while packed:
            try:
                unpacker.decompress(packed, _BLOCK)
            except zlib.error:
                return "damaged"
            is_begun, packed = True, unpacker.unconsumed_tail
            if unpacker.eof:
                packed = unpacker.unused_data or file.read(_BLOCK)
                if not packed.startswith(GZIP[:1]):  # what follows is padding
                    return None
                unpacker, is_begun = zlib.decompressobj(_WINDOW), False
            packed = packed or file.read(_BLOCK)
    return "cut" if is_begun else None


def noting_break(path: Path, capture: Capture) -> Capture:
    """Return what was read of a file with a note where its gzip stream ends early."""
    broken = how_broken(path)
    if broken is None:
        return capture
    said = f"The compressed file is {broken}: its gzip stream ends early, and the rest is not read."
    return replace(capture, events=(Event(0, "check", None, {"sentence": said}), *capture.events))
