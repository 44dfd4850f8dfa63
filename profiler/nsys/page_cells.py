"""Where records begin in SQLite leaf pages.

A page lists the places of its rows; a row is the length of its record, its number (rowid), both as
varints, and the record. Format: sqlite.org/fileformat2.html, section 1.6.
"""

from __future__ import annotations

import numpy as np

from stallscope.profiler.nsys.page_file import LEAF, Irregular
from stallscope.profiler.trace.timeline import Bytes, Ints

PAD_BYTES = 4096  # readable bytes that must follow the pages
ONE_BYTE = 128  # numbers below are varints of one byte
_SPILL_BYTES = 35  # a record longer than the page's usable bytes less these spills over


def records(block: Bytes, pages: int, usable_bytes: int) -> Ints:
    """Return where each record begins in `block`: whole leaf pages in a row, and PAD_BYTES more.

    Raises Irregular where records spill over pages, or pages are no leaves.
    """
    page_bytes = (len(block) - PAD_BYTES) // pages
    cells = _cells(block[: pages * page_bytes].reshape(pages, page_bytes))
    if not len(cells):
        return cells
    at = cells + _length_bytes(block, cells, usable_bytes - _SPILL_BYTES)
    return at + _rowid_bytes(block, at)


def row_numbers(page: Bytes) -> tuple[int, int] | None:
    """Return the numbers (rowids) of the first and the last row of a leaf, None of an empty one."""
    count = int(page[3]) << 8 | int(page[4])
    if page[0] != LEAF or not count or 8 + 2 * count > len(page):
        return None
    data = page.tobytes()
    return _row_number(data, 8), _row_number(data, 6 + 2 * count)


def _row_number(page: bytes, pointer: int) -> int:
    """Read the second varint, after the record's length, of the cell to which a pointer points."""
    at, number = int.from_bytes(page[pointer : pointer + 2]), 0
    for _ in range(2):
        number = 0
        for byte in page[at : at + 9]:
            at += 1
            number = number << 7 | byte & 127
            if byte < ONE_BYTE:
                break
    return number


def _cells(pages: Bytes) -> Ints:
    """Return where each row begins, as an offset into the pages laid in a row."""
    if np.any(pages[:, 0] != LEAF):
        raise Irregular("a page of another kind stands among the table's rows")
    counts = pages[:, 3].astype(np.int64) << 8 | pages[:, 4]
    most, page_bytes = int(counts.max(initial=0)), pages.shape[1]
    if 8 + 2 * most > page_bytes:
        raise Irregular("a page says that it holds more than fits")
    pointers: Ints = np.ascontiguousarray(pages[:, 8 : 8 + 2 * most]).view(">u2").astype(np.int64)
    is_row = np.arange(most) < counts[:, None]
    if np.any(pointers[is_row] >= page_bytes):
        raise Irregular("a page points outside itself")
    cells: Ints = (pointers + np.arange(len(pages))[:, None] * page_bytes)[is_row]
    return cells


def _length_bytes(block: Bytes, at: Ints, most: int) -> Ints:
    """Return how many bytes each record's length takes; it must be at most `most`."""
    first = block[at]
    is_long = first >= ONE_BYTE
    if np.any(is_long):
        second = block[at[is_long] + 1]
        value = (first[is_long].astype(np.int64) & 127) << 7 | (second & 127)
        if np.any(second >= ONE_BYTE) or np.any(value > most):
            raise Irregular("rows spill over pages")
    return 1 + is_long.astype(np.int64)


def _rowid_bytes(block: Bytes, at: Ints) -> Ints | int:
    """Return how many bytes each row's number takes: rows ascend, so mostly all the same."""
    ends = at[[0, -1]]
    first, last = _varint_lengths(block, ends).tolist()
    return int(first) if first == last else _varint_lengths(block, at)


def _varint_lengths(block: Bytes, at: Ints) -> Ints:
    length = np.ones(len(at), dtype=np.int64)
    goes_on = block[at] >= ONE_BYTE
    while np.any(goes_on):
        length += goes_on
        goes_on &= (length < 9) & (block[at + length - 1] >= ONE_BYTE)
    return length
