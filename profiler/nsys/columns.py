"""Whole tables as arrays: from the file's pages over several threads, else through SQLite."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import numpy as np

from stallscope.errors import InputError
from stallscope.profiler.nsys.database import Database, Table
from stallscope.profiler.nsys.growing import Columns, Growing, Kind, joined, room
from stallscope.profiler.nsys.page_cells import PAD_BYTES, row_numbers
from stallscope.profiler.nsys.page_file import Irregular, PageFile, leaves
from stallscope.profiler.nsys.page_rows import (
    MISSING,
    Field,
    Rare,
    WrongType,
    decode_rows,
)
from stallscope.profiler.trace.timeline import Ints

PAGES_AT_ONCE = 256  # with what is worked out from them, about what a core caches
ROWS_AT_ONCE = 20_000
_MOST_THREADS = 4
_LEAST_ROW = 6  # bytes of a page that a row takes at least
_LEAST_PAGES = 2_000  # of a table, for a second thread to pay


def read_columns(database: Database, table: Table, kinds: Mapping[str, Kind]) -> Columns:
    """Return the table's columns by name, each of the kind asked for, in the order of rows.

    Columns that the table lacks are absent. NULL is −2⁶³ in int64, −1 in int32 and in codes, 0 in
    uint32, 255 in uint8, NaN in float64. "rare" is for columns that are mostly NULL: Rare. Raises
    InputError where a value is no number.
    """
    known: dict[str, Kind] = {name: kind for name, kind in kinds.items() if name in table.places}
    if not known:
        return {}
    try:
        try:
            return from_pages(database.pages, table, known)
        except Irregular:
            return from_sqlite(database, table, known)
    except WrongType as error:
        name = next(n for n, place in table.places.items() if place == error.args[0])
        raise InputError(
            f"{database.path}: {table.name}.{name} holds what is no whole number; this is not an "
            "export of nsys as it writes them: export the report again"
        ) from error


def from_pages(file: PageFile, table: Table, kinds: Mapping[str, Kind]) -> Columns:
    """Decode the table's pages. Raises Irregular where SQLite has to read it."""
    if table.key in kinds:
        raise Irregular("a key may be the row's number, which the record does not hold")
    pages = leaves(file, table.root)
    fields = [
        Field(table.places[name], real=kind == "float64", far=kind == "rare")
        for name, kind in kinds.items()
    ]
    threads = min(_MOST_THREADS, os.cpu_count() or 1) if len(pages) >= _LEAST_PAGES else 1
    shares = [share for share in np.array_split(pages, threads) if len(share)]
    spans = _spans(file, shares)
    arrays = None if spans is None else room(kinds, spans[-1][1])
    parts = [
        Growing(kinds, None if arrays is None else {n: a[slice(*span)] for n, a in arrays.items()})
        for span in spans or [(0, 0)] * len(shares)
    ]

    def decode(part: Growing, share: Ints) -> None:
        most = min(PAGES_AT_ONCE, len(share))
        buffer = np.zeros(most * file.page_bytes + PAD_BYTES, dtype=np.uint8)
        for start in range(0, len(share), PAGES_AT_ONCE):
            some = share[start : start + PAGES_AT_ONCE]
            block = buffer[: len(some) * file.page_bytes + PAD_BYTES]
            file.fill(block, some)
            rows = decode_rows(block, len(some), file.usable_bytes, fields)
            part.add(rows, (start + len(some)) / len(share))

    if threads == 1:
        decode(parts[0], pages)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(decode, parts, shares))
    return joined(parts, kinds, arrays if all(part.is_full for part in parts) else None)


def _spans(file: PageFile, shares: Sequence[Ints]) -> list[tuple[int, int]] | None:
    """Return from which row to which each share of the pages goes, if rows are numbered in a row.

    Where they are not, for instance because some were deleted, no share will fill its span. None
    where the numbers are no use at all.
    """
    ends = [row_numbers(file.read(int(page), 1)) for share in shares for page in share[[0, -1]]]
    if any(end is None for end in ends):
        return None
    numbers = [end for end in ends if end is not None]
    first, last = numbers[0][0], numbers[-1][1]
    edges = [*(number - first for number, _ in numbers[::2]), last - first + 1]
    pages = sum(len(share) for share in shares)
    if edges != sorted(edges) or edges[-1] * _LEAST_ROW > pages * file.page_bytes:
        return None
    return list(pairwise(edges))


def from_sqlite(database: Database, table: Table, kinds: Mapping[str, Kind]) -> Columns:
    """Read the same through SQLite, some rows at a time."""
    part = Growing(kinds)
    cursor = iter(database.rows(table.name, list(kinds)))
    places = [table.places[name] for name in kinds]
    while True:
        rows = [row for _, row in zip(range(ROWS_AT_ONCE), cursor, strict=False)]
        columns = zip(*rows, strict=True) if rows else [()] * len(kinds)
        part.add(
            [
                _numbers(values, place, kind)
                for values, place, kind in zip(columns, places, kinds.values(), strict=True)
            ]
        )
        if len(rows) < ROWS_AT_ONCE:
            return joined([part], kinds)


def _numbers(values: Sequence[Any], place: int, kind: Kind) -> Any:
    real = kind == "float64"
    allowed = (int, float) if real else (int,)
    if any(value is not None and not isinstance(value, allowed) for value in values):
        raise WrongType(place)
    absent = np.nan if real else MISSING
    plain = [absent if value is None else value for value in values]
    numbers = np.array(plain, dtype=np.float64 if real else np.int64)
    if kind != "rare":
        return numbers
    there = np.flatnonzero(numbers != MISSING)
    return Rare(there, numbers[there].astype(np.int64))
