"""Pages of an SQLite database: the file's header, and the leaves of one table's B-tree.

SQLite hands rows to Python one object per value, at a tenth of the speed at which their bytes can
be decoded in columns. So large tables of integers are read from the pages themselves, whose format
is documented and frozen: sqlite.org/fileformat2.html, sections 1.3 and 1.6. Nothing is mapped, so a
file that shrinks while it is read is an error, not a signal.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stallscope.errors import InputError
from stallscope.profiler.trace.timeline import Bytes, Ints

MAGIC = b"SQLite format 3\x00"
HEADER_BYTES = 100
LEAF = 13  # first byte of a page of table rows
_INTERIOR = 5
_MOST_LEVELS = 20
_LEAST_RUN = 8  # pages that follow one another on average, for runs to be read one by one
_GAP_PAGES = 3  # for each page that is wanted, so many may be read in vain to read it in one go


class Irregular(Exception):
    """The pages hold what columns are not decoded from; SQLite itself has to read the table."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """An open database: `usable_bytes` of each page of `page_bytes` hold content."""

    path: Path
    handle: int
    page_bytes: int
    usable_bytes: int
    pages: int

    def read(self, first: int, count: int) -> Bytes:
        """Return `count` pages from page number `first` on, as bytes in a row."""
        data = os.pread(self.handle, count * self.page_bytes, (first - 1) * self.page_bytes)
        if len(data) != count * self.page_bytes:
            raise InputError(f"{self.path} ends within its pages; copy or export it again")
        return np.frombuffer(data, dtype=np.uint8)

    def fill(self, block: Bytes, pages: Ints) -> None:
        """Read the given pages to the front of `block`, one after another."""
        breaks = np.flatnonzero(np.diff(pages) != 1) + 1
        if len(breaks) * _LEAST_RUN > len(pages):
            self._pick(block, pages)
            return
        ends = [*breaks.tolist(), len(pages)]
        for start, end in zip([0, *ends[:-1]], ends, strict=True):
            room = block[start * self.page_bytes : end * self.page_bytes].data
            read = os.preadv(self.handle, [room], (int(pages[start]) - 1) * self.page_bytes)
            if read != len(room):
                raise InputError(f"{self.path} ends within its pages; copy or export it again")

    def _pick(self, block: Bytes, pages: Ints) -> None:
        first, span, size = int(pages.min()), int(np.ptp(pages)) + 1, self.page_bytes
        there = block[: len(pages) * size].reshape(len(pages), size)
        if span <= (1 + _GAP_PAGES) * len(pages):
            there[:] = self.read(first, span).reshape(span, size)[pages - first]
        else:
            for place, page in enumerate(pages.tolist()):
                there[place] = self.read(page, 1)


@contextmanager
def open_pages(path: Path) -> Iterator[PageFile]:
    """Open a database for reading; InputError where it is none or is shorter than it says."""
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check the name") from error
    try:
        head = os.pread(handle, HEADER_BYTES, 0)
        yield _page_file(path, handle, head, os.fstat(handle).st_size)
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); copy it again") from error
    finally:
        os.close(handle)


def _page_file(path: Path, handle: int, head: bytes, size: int) -> PageFile:
    if not head:
        raise InputError(f"{path} is empty; export the report again")
    if not head.startswith(MAGIC):
        raise InputError(f"{path} is not an SQLite file; export with nsys export --type sqlite")
    page_bytes = int.from_bytes(head[16:18])
    page_bytes = 65536 if page_bytes == 1 else page_bytes
    pages = int.from_bytes(head[28:32])
    usable = page_bytes - (head[20] if len(head) > 20 else 0)
    is_sound = 512 <= page_bytes <= 65536 and page_bytes & (page_bytes - 1) == 0 and usable >= 480
    if len(head) < HEADER_BYTES or not is_sound:
        raise InputError(f"{path} has a damaged SQLite header; copy or export it again")
    if size < pages * page_bytes:
        raise InputError(
            f"{path} is cut: {size:,} bytes of {pages * page_bytes:,}; copy or export it again"
        )
    return PageFile(path, handle, page_bytes, usable, size // page_bytes)


def leaves(file: PageFile, root: int) -> Ints:
    """Return the numbers of the pages that hold a table's rows, in the order of rows.

    Raises Irregular where the table is not a tree of rows, or is damaged.
    """
    level = np.array([root], dtype=np.int64)
    for _ in range(_MOST_LEVELS):
        if level.min() < 1 or level.max() > file.pages or len(level) > file.pages:
            raise Irregular("a page number lies outside the file")
        if file.read(int(level[0]), 1)[0] == LEAF:
            return level
        level = np.concatenate([_children(file.read(int(page), 1)) for page in level])
    raise Irregular("the table's tree has no end")


def _children(page: Bytes) -> Ints:
    if page[0] != _INTERIOR:
        raise Irregular("a page of another kind stands in the table's tree")
    count = int(page[3]) << 8 | int(page[4])
    if 12 + 2 * count > len(page):
        raise Irregular("a page says that it holds more than fits")
    at = page[12 : 12 + 2 * count].view(">u2").astype(np.int64)
    if count and at.max() + 4 > len(page):
        raise Irregular("a page points outside itself")
    left = page[at[:, None] + np.arange(4)].reshape(-1).view(">u4").astype(np.int64)
    last = page[8:12].copy().view(">u4").astype(np.int64)
    return np.concatenate((left, last))
