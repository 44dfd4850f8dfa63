"""Files that are one: a run given twice."""

from __future__ import annotations

import filecmp
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

from stallscope.errors import InputError


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


def is_same(first: Path, second: Path) -> bool:
    """Say whether two paths lead to one file, through links too."""
    try:
        return first.samefile(second)
    except OSError:
        return first.resolve() == second.resolve()


def _holds_same(first: Path, second: Path) -> bool:
    if not (first.is_file() and second.is_file()):
        return False
    try:
        return first.stat().st_size > 0 and filecmp.cmp(first, second, shallow=False)
    except OSError:
        return False  # who reads it says why
