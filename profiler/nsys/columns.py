"""Whole tables as arrays: from the file's pages over several threads, else through SQLite."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from stallscope.errors import InputError
from stallscope.profiler.nsys.database import Database, Table
from stallscope.profiler.nsys.growing import Columns, Growing, Kind, joined
from stallscope.profiler.nsys.page_cells import PAD_BYTES
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
    shares = np.array_split(pages, threads)
    parts = [Growing(kinds) for _ in shares]

    def decode(part: Growing, share: Ints) -> None:
        most = min(PAGES_AT_ONCE, len(share))
        room = np.zeros(most * file.page_bytes + PAD_BYTES, dtype=np.uint8)
        for start in range(0, len(share), PAGES_AT_ONCE):
            some = share[start : start + PAGES_AT_ONCE]
            block = room[: len(some) * file.page_bytes + PAD_BYTES]
            file.fill(block, some)
            rows = decode_rows(block, len(some), file.usable_bytes, fields)
            part.add(rows, (start + len(some)) / len(share))

    if threads == 1:
        decode(parts[0], pages)
    else:
        with ThreadPoolExecutor(threads) as pool:
            list(pool.map(decode, parts, shares))
    return joined(parts, kinds)


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
