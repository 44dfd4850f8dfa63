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


class Growing:
    """Columns of consecutive rows, growing."""

    def __init__(self, kinds: Mapping[str, Kind]) -> None:
        self.kinds = kinds
        self.count = 0
        self.rare: dict[str, list[Rare]] = {name: [] for name in kinds}
        self.arrays: dict[str, NDArray[Any]] = {
            name: np.empty(0, dtype=np.int32 if kind == "coded" else kind)
            for name, kind in kinds.items()
            if kind != "rare"
        }
        self.codes: dict[str, dict[int, int]] = {name: {} for name in kinds}

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
        """Make room for what is expected in all: memory that is not written is not taken."""
        for name, array in self.arrays.items():
            larger = np.empty(int(end / done * 1.05) + 1, dtype=array.dtype)
            larger[: self.count] = array[: self.count]
            self.arrays[name] = larger


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


def joined(parts: Sequence[Growing], kinds: Mapping[str, Kind]) -> Columns:
    """Put the parts' rows after one another, letting go of each column as it is copied."""
    whole: dict[str, Any] = {}
    for name, kind in kinds.items():
        if kind == "rare":
            whole[name] = _joined_rare(name, parts)
            continue
        pieces = [part.arrays.pop(name)[: part.count] for part in parts]
        if kind != "coded":
            whole[name] = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
            continue
        codes: dict[int, int] = {}
        for part in parts:
            for value in part.codes[name]:
                _code(value, codes)
        for part, piece in zip(parts[1:], pieces[1:], strict=True):
            of_part = [codes[value] for value in part.codes[name]]
            piece[:] = np.array([*of_part, UNKNOWN], dtype=np.int32)[piece]
        values = np.array(list(codes), dtype=np.int64)
        whole[name] = Coded(np.concatenate(pieces), values)
    return whole


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
