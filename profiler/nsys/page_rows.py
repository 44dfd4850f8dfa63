"""Integer columns out of a run of SQLite leaf pages, many rows at a time.

A row's record begins with its columns' types, one byte each for numbers and short text, and its
values follow. Rows with the same types have the same layout, and a trace's rows have few layouts:
the rows of each layout are cut out of the pages as one array, in which a column is a slice. Where
layouts are many, because columns of varying size stand in front, each value's place is summed up
from the sizes of those before it.
Format: sqlite.org/fileformat2.html, sections 1.6 and 2.1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stallscope.profiler.nsys.page_cells import ONE_BYTE, records
from stallscope.profiler.nsys.page_file import Irregular
from stallscope.profiler.trace.timeline import Bytes, Ints

MISSING = np.iinfo(np.int64).min  # NULL, in a column of integers
_MOST_LAYOUTS = 32  # of one run of pages, before values are quicker sought one by one
_SIZES = (0, 1, 2, 3, 4, 6, 8, 8, 0, 0)  # bytes of a value, by its type's number
# The same for all types of one byte: 12 and more are text and blobs.
_SIZE_OF = np.array([*_SIZES, 0, 0, *((kind - 12) // 2 for kind in range(12, 128))], dtype=np.int64)
_HIGH_BITS = np.uint64(0x8080808080808080)
_REAL = 7

Column = Ints | NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Rare:
    """The rows in which a column is not NULL, and its values there."""

    rows: Ints
    values: Ints


class WrongType(Exception):
    """Text or a fraction stands where a whole number belongs, in the column of this place."""


@dataclass(frozen=True, slots=True)
class Field:
    """A column's place in the record, whether it holds real numbers, and whether it is mostly NULL
    and stands far behind, after columns of varying size."""

    place: int
    real: bool = False
    far: bool = False


@dataclass(frozen=True, slots=True)
class _Value:
    """Where a column's value stands in the records of one layout."""

    type: int
    offset: int


def decode_rows(
    block: Bytes, pages: int, usable_bytes: int, fields: Sequence[Field]
) -> Sequence[Column | Rare]:
    """Return the fields of all rows in `block`: int64, float64 for real, Rare for far ones.

    `block` holds whole leaf pages in a row and PAD_BYTES more. NULL is MISSING or NaN. Raises
    Irregular where rows spill over pages or lack columns, WrongType where a value is no number.
    """
    heads = records(block, pages, usable_bytes)
    outputs: list[Any] = [
        np.empty(0 if field.far else len(heads), dtype=np.float64 if field.real else np.int64)
        for field in fields
    ]
    if not len(heads):
        return [Rare(o, o) if f.far else o for f, o in zip(fields, outputs, strict=True)]
    near = [i for i, field in enumerate(fields) if not field.far]
    _decode_near(block, heads, [fields[i] for i in near], [outputs[i] for i in near])
    for i, field in enumerate(fields):
        if field.far:
            outputs[i] = _decode_far(block, heads, field)
    return outputs


def _decode_near(
    block: Bytes, heads: Ints, fields: Sequence[Field], outputs: Sequence[Any]
) -> None:
    """Fill columns layout by layout, and what is left after the commonest layouts one by one."""
    last = max(field.place for field in fields)
    for key, rows in _layouts(_heads(block, heads, last + 2)):
        chosen = heads if rows is None else heads[rows]
        here = slice(None) if rows is None else rows
        if key is None:
            for output, field in zip(outputs, fields, strict=True):
                output[here] = _one_by_one(block, chosen, field)
            return
        values = _values(key, last)
        bodies = _windows(block, chosen + key[0], values[last].offset + 8)
        for output, field in zip(outputs, fields, strict=True):
            output[here] = _column(bodies, values[field.place], field)


def _decode_far(block: Bytes, heads: Ints, field: Field) -> Rare:
    """Return the rows in which a column is not NULL, which its type alone, 0, tells."""
    head = _heads(block, heads, field.place + 2)
    if np.any(head & _HIGH_BITS):
        raise Irregular("long text stands before a column that is wanted")
    rows = np.flatnonzero(head.view(np.uint8)[:, 1 + field.place])
    return Rare(rows, _one_by_one(block, heads[rows], field))


def _windows(block: Bytes, at: Ints, width: int) -> NDArray[np.uint64]:
    """Return the bytes from each place on, as whole words: shape (n, width / 8 rounded up)."""
    words = (width + 7) // 8
    view = np.ndarray(len(block) - 8 * words + 1, dtype=f"V{8 * words}", buffer=block, strides=(1,))
    return view[at].view(np.uint64).reshape(len(at), words)


def _heads(block: Bytes, at: Ints, width: int) -> NDArray[np.uint64]:
    """Return the first `width` bytes of each record, the rest of the last word zero."""
    heads = _windows(block, at, width)
    if width % 8:
        heads[:, -1] &= np.uint64((1 << 8 * (width % 8)) - 1)
    return heads


def _layouts(heads: NDArray[np.uint64]) -> Iterator[tuple[bytes | None, Ints | None]]:
    """Yield distinct heads and the rows that have each; None: all of them.

    What rows are left after the first so many come last, with None for a head.
    """
    same = _equals_first(heads)
    if same.all():
        yield heads[0].tobytes(), None
        return
    left = np.arange(len(heads))
    for _ in range(_MOST_LAYOUTS):
        yield heads[0].tobytes(), left[same]
        left, heads = left[~same], heads[~same]
        if not len(left):
            return
        same = _equals_first(heads)
    yield None, left


def _equals_first(heads: NDArray[np.uint64]) -> NDArray[np.bool_]:
    same: NDArray[np.bool_] = heads[:, 0] == heads[0, 0]
    for word in range(1, heads.shape[1]):
        same &= heads[:, word] == heads[0, word]
    return same


def _values(key: bytes, last: int) -> Mapping[int, _Value]:
    """Read a record's head: the length of the head itself, then a type for each column."""
    length, offset = key[0], 0
    if length >= ONE_BYTE or length < last + 2:
        raise Irregular("rows lack columns, or have very many")
    values = {}
    for place in range(last + 1):
        kind = key[1 + place]
        if kind >= ONE_BYTE or kind in (10, 11):
            raise Irregular("long text stands before a column that is wanted")
        values[place] = _Value(kind, offset)
        offset += _SIZES[kind] if kind < len(_SIZES) else (kind - 12) // 2
    return values


def _column(bodies: NDArray[np.uint64], value: _Value, field: Field) -> Any:
    size = _SIZES[value.type] if value.type < len(_SIZES) else -1
    if value.type == 0:
        return np.nan if field.real else MISSING
    if size == 0:
        return value.type - 8  # the types 8 and 9 are the numbers 0 and 1
    if size < 0 or (value.type == _REAL and not field.real):
        raise WrongType(field.place)
    raw = np.ndarray(
        len(bodies),
        dtype=">f8" if value.type == _REAL else ">i8",
        buffer=bodies,
        offset=value.offset,
        strides=(bodies.shape[1] * 8,),
    )
    if value.type == _REAL:
        return raw.astype(np.float64)
    return raw.astype(np.int64) >> (64 - 8 * size)


def _one_by_one(block: Bytes, heads: Ints, field: Field) -> Any:
    """Return a column of rows that need not have a layout in common."""
    head = _windows(block, heads, field.place + 2).view(np.uint8)
    length, types = head[:, 0], head[:, 1 : field.place + 2]
    if np.any(length >= ONE_BYTE) or np.any(length < field.place + 2) or np.any(types >= ONE_BYTE):
        raise Irregular("rows lack columns, or have long text before a column that is wanted")
    kind = types[:, -1]
    if np.any(kind >= len(_SIZES)) or (not field.real and np.any(kind == _REAL)):
        raise WrongType(field.place)
    sizes = _SIZE_OF[types]
    at = heads + length + sizes[:, :-1].sum(axis=1, dtype=np.int64)
    view = np.ndarray(len(block) - 7, dtype=">i8", buffer=block, strides=(1,))
    raw = view[at].astype(np.int64)
    whole = np.where(kind >= 8, kind - 8, raw >> np.where(kind, 64 - 8 * sizes[:, -1], 0) % 64)
    if not field.real:
        return np.where(kind, whole, MISSING)
    return np.where(kind, np.where(kind == _REAL, raw.view(np.float64), whole), np.nan)
