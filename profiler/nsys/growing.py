"""Columns that grow block by block, in as few bytes as their kind allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from stallscope.profiler.nsys.page_rows import MISSING, Rare
from stallscope.profiler.trace.timeline import UNKNOWN, Ints

_FEW_VALUES = 64  # in one block, up to which comparing beats sorting

Kind = Literal["int64", "int32", "uint32", "uint8", "float64", "coded", "rare"]
# What stands for NULL, and for a number too large for the kind.
_ABSENT = {"int64": MISSING, "int32": UNKNOWN, "uint32": 0, "uint8": 255}
Columns = Mapping[str, Any]  # NDArray, Coded or Rare, as the kind asks


@dataclass(frozen=True, slots=True)
class Coded:
    """A column with few distinct values: `code` indexes `values`; NULL is the code −1."""

    code: NDArray[np.int32]
    values: Ints


Arrays = dict[str, NDArray[Any]]


def room(kinds: Mapping[str, Kind], count: int) -> Arrays:
    """Return columns for so many rows: memory that is not written is not taken."""
    return {
        name: np.empty(count, dtype=np.int32 if kind == "coded" else kind)
        for name, kind in kinds.items()
        if kind != "rare"
    }


class Growing:
    """Columns of consecutive rows, growing; `arrays` is the room that they begin with."""

    def __init__(self, kinds: Mapping[str, Kind], arrays: Arrays | None = None) -> None:
        self.kinds = kinds
        self.count = 0
        self.rare: dict[str, list[Rare]] = {name: [] for name in kinds}
        self.arrays = room(kinds, 0) if arrays is None else arrays
        self._given = None if arrays is None else len(next(iter(arrays.values())))
        self.codes: dict[str, dict[int, int]] = {name: {} for name in kinds}

    @property
    def is_full(self) -> bool:
        """Say whether the rows fill the room that was given, and have not outgrown it."""
        return self.count == self._given

    def add(self, columns: Sequence[Any], done: float = 0.5) -> None:
        """Append rows; `done` is about the share of the part's rows that is then there."""
        end = self.count + len(columns[0])
        if end > len(next(iter(self.arrays.values()))):
            self._grow(end, done)
        for (name, kind), column in zip(self.kinds.items(), columns, strict=True):
            if kind == "rare":
                self.rare[name].append(Rare(column.rows + self.count, column.values))
            elif kind == "coded":
                self.arrays[name][self.count : end] = encode(column, self.codes[name])
            else:
                self.arrays[name][self.count : end] = _narrow(column, kind)
        self.count = end

    def _grow(self, end: int, done: float) -> None:
        """Make room for what is expected in all."""
        larger = room(self.kinds, int(end / done * 1.05) + 1)
        for name, array in self.arrays.items():
            larger[name][: self.count] = array[: self.count]
        self.arrays = larger


def _narrow(column: Any, kind: Kind) -> Any:
    """Bring int64 to the kind, what is NULL or does not fit to that kind's absent value."""
    if kind in ("int64", "float64"):
        return column
    narrowed = column.astype(kind)
    fits = narrowed == column
    return narrowed if fits.all() else np.where(fits, narrowed, np.array(_ABSENT[kind], kind))


def encode(column: Ints, codes: dict[int, int]) -> NDArray[np.int32]:
    """Replace each value by its code, giving new values the next ones; NULL is −1."""
    coded = np.empty(len(column), dtype=np.int32)
    left = None
    for _ in range(_FEW_VALUES):
        if not len(column):
            return coded
        same = column == column[0]
        coded[same if left is None else left[same]] = _code(int(column[0]), codes)
        if same.all():
            return coded
        left = np.flatnonzero(~same) if left is None else left[~same]
        column = column[~same]
    values, place = np.unique(column, return_inverse=True)
    coded[left] = np.array([_code(value, codes) for value in values.tolist()], np.int32)[place]
    return coded


def _code(value: int, codes: dict[int, int]) -> int:
    return UNKNOWN if value == MISSING else codes.setdefault(value, len(codes))


def joined(
    parts: Sequence[Growing], kinds: Mapping[str, Kind], arrays: Arrays | None = None
) -> Columns:
    """Put the parts' rows after one another, letting go of each column as it is copied.

    Where the parts have filled `arrays`, in order and to the last row, these are the columns.
    """
    whole: dict[str, Any] = {}
    for name, kind in kinds.items():
        if kind == "rare":
            whole[name] = _joined_rare(name, parts)
            continue
        pieces = [part.arrays.pop(name)[: part.count] for part in parts]
        if kind == "coded":
            values = _one_code(pieces, [part.codes[name] for part in parts])
        column = arrays.pop(name) if arrays is not None else np.concatenate(pieces)
        whole[name] = Coded(column, values) if kind == "coded" else column
    return whole


def _one_code(pieces: Sequence[NDArray[Any]], codes: Sequence[dict[int, int]]) -> Ints:
    """Make the pieces' codes mean the same, and return the values that they stand for."""
    values: dict[int, int] = {}
    for of_part in codes:
        for value in of_part:
            _code(value, values)
    for piece, of_part in zip(pieces, codes, strict=True):
        new = [values[value] for value in of_part]
        if new != list(range(len(new))):
            piece[:] = np.array([*new, UNKNOWN], dtype=np.int32)[piece]
    return np.array(list(values), dtype=np.int64)


def _joined_rare(name: str, parts: Sequence[Growing]) -> Rare:
    starts = np.cumsum([0, *(part.count for part in parts[:-1])]).tolist()
    pieces = [
        (piece.rows + start, piece.values)
        for start, part in zip(starts, parts, strict=True)
        for piece in part.rare[name]
    ]
    none: Ints = np.empty(0, dtype=np.int64)
    return Rare(
        np.concatenate([none, *(rows for rows, _ in pieces)]),
        np.concatenate([none, *(values for _, values in pieces)]),
    )
