"""Files that are one: a run given twice, and a file both read and written."""

from __future__ import annotations

import filecmp
import os
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from pathlib import Path

from stallscope.errors import InputError, UsageError


def check_distinct(files: Sequence[Path]) -> None:
    """Refuse a run that is compared with itself, whatever paths it is given by."""
    for first, second in combinations(files, 2):
        if is_same(first, second):
            raise InputError(f"{second}: is given twice; a run beside itself tells nothing")
        if _holds_same(first, second):
            raise InputError(
                f"{second}: holds the same as {first}, byte for byte; a run beside itself tells "
                "nothing"
            )


def check_not_read(written: Mapping[str, Path | None], read: Iterable[Path | str | None]) -> None:
    """Refuse to write what the command reads, --force or not: no run would be left to judge."""
    sources = [Path(path) for path in read if path is not None]
    # A model may be named by its folder.
    sources += [path / "config.json" for path in sources if os.path.isdir(path)]
    for option, target in written.items():
        for source in sources:
            if target is not None and os.path.exists(target) and is_same(target, source):
                behind = "" if target == source else f" as {source}"
                raise UsageError(f"{option} {target}: is read{behind}; name another file")


def is_same(first: Path, second: Path) -> bool:
    """Say whether two paths lead to one file, through links too."""
    try:
        return first.samefile(second)
    except OSError:
        return os.path.realpath(first) == os.path.realpath(second)


def _holds_same(first: Path, second: Path) -> bool:
    if not (os.path.isfile(first) and os.path.isfile(second)):
        return False
    try:
        return first.stat().st_size > 0 and filecmp.cmp(first, second, shallow=False)
    except OSError:
        return False  # who reads it says why
