"""How a recorder inside a traced command tells the tracer outside where its record is.

`stallscope nsys` names a folder in the environment; each Recorder that opens a capture leaves one
small JSON file there.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.checked_json import Fields, read_object

FOLDER = "STALLSCOPE_NSYS"
_READS = 5  # of the clocks; the pair read fastest is the most exact


@dataclass(frozen=True, slots=True)
class Announced:
    """A record that a traced process began: its file, and its clock beside the wall clock.

    `unix_ns` was read while the record's clock showed `clock_ns`, give or take `error_ns`. `nvtx`
    is the version of the package nvtx in that process, None where it has none.
    """

    capture: Path
    pid: int
    clock_ns: int
    unix_ns: int
    error_ns: int
    nvtx: str | None


def announce(capture: Path, clock: Callable[[], int]) -> None:
    """Tell the tracer outside, if there is one, of a capture that begins here.

    What fails is left: the run must not end because nobody can be told of it.
    """
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    clock_ns, unix_ns, error_ns = min((_read_clocks(clock) for _ in range(_READS)), key=_error)
    said = {
        "capture": str(capture.absolute()),
        "pid": os.getpid(),
        "clock_ns": clock_ns,
        "unix_ns": unix_ns,
        "error_ns": error_ns,
        "monotonic_ns": time.monotonic_ns(),
        "perf_counter_ns": time.perf_counter_ns(),
        "nvtx": _nvtx_version(),
    }
    with suppress(OSError, UnicodeError):
        unfinished = Path(folder, f"{os.getpid()}-{time.monotonic_ns()}.part")
        unfinished.write_text(json.dumps(said))
        unfinished.rename(unfinished.with_suffix(".json"))


def announced(folder: Path) -> tuple[Announced, ...]:
    """Return what recorders left in the folder, in the order in which they began."""
    found = [_read(path) for path in folder.glob("*.json")]
    return tuple(sorted((f for f in found if f is not None), key=lambda one: one.unix_ns))


def _read(path: Path) -> Announced | None:
    """Read one file; one that a foreign program left there says nothing."""
    try:
        said = read_object(path)
        capture, nvtx = said.text("capture"), said.text("nvtx")
        clock_ns, unix_ns, error_ns, pid = map(
            _whole(said), ("clock_ns", "unix_ns", "error_ns", "pid")
        )
    except InputError:
        return None
    return Announced(Path(capture), pid, clock_ns, unix_ns, error_ns, nvtx) if capture else None


def _whole(said: Fields) -> Callable[[str], int]:
    def get(name: str) -> int:
        value = said.get(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise said.error(name, "must be a whole number")
        return value

    return get


def _read_clocks(clock: Callable[[], int]) -> tuple[int, int, int]:
    before_ns, unix_ns, after_ns = clock(), time.time_ns(), clock()
    return (before_ns + after_ns) // 2, unix_ns, (after_ns - before_ns + 1) // 2


def _error(read: tuple[int, int, int]) -> int:
    return read[2]


def _nvtx_version() -> str | None:
    from importlib import metadata  # takes longer than all else here

    try:
        return metadata.version("nvtx")
    except metadata.PackageNotFoundError:
        return None
