"""Texts of a trace by their index, and numbers of texts by the places they take."""

from __future__ import annotations

import numpy as np

from stallscope.profiler.trace.timeline import UNKNOWN, SmallInts

_MOST_UNUSED = 10_000_000  # entries of a table from number to place that may be in vain


class Texts:
    """Texts in the order in which they are met; their place is the trace's index."""

    def __init__(self) -> None:
        self._places: dict[str, int] = {}

    def place(self, text: str) -> int:
        """Return the index of a text."""
        return self._places.setdefault(text, len(self._places))

    def all(self) -> tuple[str, ...]:
        """Return the texts met, in the order of their indices."""
        return tuple(self._places)


def distinct(numbers: SmallInts) -> tuple[list[int], SmallInts]:
    """Return the distinct numbers in ascending order, and each row's place among them."""
    if not len(numbers):
        return [], numbers
    greatest = int(numbers.max())
    if numbers.min() < UNKNOWN or greatest > 4 * len(numbers) + _MOST_UNUSED:
        values, places = np.unique(numbers, return_inverse=True)
        return values.tolist(), places.astype(np.int32)
    used = np.zeros(greatest + 2, dtype=bool)
    used[numbers] = True  # −1 takes the last entry
    place_of = np.cumsum(used, dtype=np.int32)
    has_none = bool(used[-1])
    place_of[:-1] -= 0 if has_none else 1
    place_of[-1] = 0
    none = [UNKNOWN] if has_none else []
    return none + np.flatnonzero(used[:-1]).tolist(), place_of[numbers]
