"""Tell a refused allocation from every other failure, whoever refused it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from stallscope.errors import StallscopeError

Stage = Literal["weights", "kv", "step", "probe"]

# torch on a CPU raises a plain RuntimeError; its OutOfMemoryError (CUDA) is one too.
_REFUSALS = ("can't allocate memory", "out of memory")
_ASKED = re.compile(r"tried to allocate ([\d.]+) (bytes|KiB|MiB|GiB|TiB)", re.IGNORECASE)
_UNIT_BYTES = {"bytes": 1, "kib": 1 << 10, "mib": 1 << 20, "gib": 1 << 30, "tib": 1 << 40}


class AllocationFailed(StallscopeError):
    """Memory was asked for and refused: at which stage, how much if known, in whose words."""

    def __init__(self, stage: Stage, bytes_requested: int | None, message: str) -> None:
        asked = "" if bytes_requested is None else f" ({bytes_requested:,} bytes asked for)"
        super().__init__(
            f"out of memory at stage {stage}{asked}: {message}; "
            "take a smaller model, dtype or KV budget"
        )
        self.stage = stage
        self.bytes_requested = bytes_requested
        self.message = message


@contextmanager
def out_of_memory(stage: Stage) -> Iterator[None]:
    """Turn a refused allocation in the block into AllocationFailed; let all else through."""
    try:
        yield
    except (MemoryError, RuntimeError) as error:
        text = str(error)
        if not isinstance(error, MemoryError) and not any(mark in text for mark in _REFUSALS):
            raise
        message = text.splitlines()[0] if text else type(error).__name__
        raise AllocationFailed(stage, _bytes_asked(text), message) from error


def _bytes_asked(text: str) -> int | None:
    found = _ASKED.search(text)
    if found is None:
        return None
    return round(float(found[1]) * _UNIT_BYTES[found[2].lower()])
