"""Read a file of one or several pages of /metrics."""

from __future__ import annotations

import codecs
import re
from collections.abc import Iterable, Iterator, Sequence
from io import TextIOWrapper
from itertools import dropwhile
from os import PathLike
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.metrics_page.engines import engine_of, may_matter
from stallscope.profiler.metrics_page.exposition import sample_of, sane_ns
from stallscope.profiler.metrics_page.notes import CUT
from stallscope.profiler.metrics_page.scrape import (
    DEVICES,
    OF_PROCESS,
    Scrape,
    is_broken_off,
    scrape_lines,
)
from stallscope.profiler.metrics_page.times import placed
from stallscope.profiler.metrics_page.to_capture import capture_of_scrapes
from stallscope.profiler.metrics_page.wide_csv import heading, read_rows
from stallscope.profiler.opened import opened
from stallscope.profiler.telemetry.rows import left_out

_SCRAPE = re.compile(r"# ?scrape_unix_ms[ =:]+([0-9]{12,13})\b")
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_MS = 1_000_000
_LONGEST = 1 << 20
MOST_BYTES = 64 << 20  # of one page; a vLLM server's has 60 kB, a federated one of hundreds 20 MB


def has_page(lines: Sequence[str]) -> bool:
    """Tell whether a line of an engine's metrics stands in these, or a table of them begins."""
    return _header(lines) is not None or any(map(_is_whole, filter(may_matter, lines)))


def _header(lines: Iterable[str]) -> str | None:
    """Return the header of a table of metrics, which is the first line that says anything."""
    first = next((line for line in lines if line.strip() and line[0] != "#"), "")
    return first if heading(first) is not None else None


def _is_whole(line: str) -> bool:
    sample = sample_of(line)
    return sample is not None and engine_of(sample) is not None


def read_metrics(path: str | PathLike[str]) -> Capture:
    """Read a page, a series of whole pages, each behind "# scrape_unix_ms N", or a table of them.

    Pages that are glued together without it are told apart where a series comes again. Times count
    from the first page. Raises InputError for a page of more than 64 MiB, and where no engine's
    metrics are found.
    """
    path = Path(path)
    header = _header(_lines(path))
    if header is not None:
        return _of_table(path, header)
    is_timed, scrapes = placed(_scrapes(path))
    return capture_of_scrapes(scrapes, str(path), is_timed=is_timed)


def _of_table(path: Path, header: str) -> Capture:
    body = dropwhile(lambda line: line != header, _lines(path))
    rows = read_rows(next(body), body)
    if not rows.scrapes:
        raise InputError(f"{path} is a table of metrics but has no row with a time and a value")
    is_timed, scrapes = placed(rows.scrapes)
    said = [*left_out(rows.wrong), *([CUT] if rows.is_cut else [])]
    return capture_of_scrapes(scrapes, str(path), is_timed=is_timed, said=said)


def _scrapes(path: Path) -> Iterator[Scrape]:
    for unix_ns, lines, is_cut in _pages(path):
        yield scrape_lines(lines, 0, unix_ns, is_cut=is_cut)


def _pages(path: Path) -> Iterator[tuple[int | None, list[str], bool]]:
    """Yield the lines that may matter of one page after the other, and when it was scraped.

    The last one may be cut.
    """
    unix_ns: int | None = None
    kept: list[str] = []
    seen: set[str] = set()
    size, line, last = 0, "", ""
    for line in _lines(path):
        found = _SCRAPE.match(line) if line.startswith("#") else None
        series = _series(line) if found is None else ""
        # A series twice in a row is one too many; else a page begins anew where one comes again.
        is_twice = series == last and len(seen) > 1
        if found is not None or (series in seen and not is_twice):
            if kept:
                yield unix_ns, kept, False
            unix_ns = sane_ns(int(found[1]) * _MS) if found is not None else None
            kept, size = [], 0
            seen.clear()
        size += len(line)
        if size > MOST_BYTES:
            raise InputError(
                f"{path}: one page of more than {MOST_BYTES >> 20} MiB, where an engine's has "
                "less than one; give the page of the engine alone"
            )
        if series:
            seen.add(series)
            last = series
            kept.append(line)
        elif line.startswith((*OF_PROCESS, DEVICES)):
            kept.append(line)
    is_cut = is_broken_off(line)
    if is_cut and kept[-1:] == [line]:
        kept.pop()
    if kept:
        yield unix_ns, kept, is_cut


def _series(line: str) -> str:
    """Return a series by its name and labels, "" for what does not matter."""
    if not may_matter(line):
        return ""
    end = line.rfind("}")
    return line[: end + 1] if end > 0 else line.split(maxsplit=1)[0]


def _lines(path: Path) -> Iterator[str]:
    try:
        with opened(path) as file:
            encoding = "utf-16" if file.peek(2).startswith(_UTF16) else "utf-8-sig"
            text = TextIOWrapper(file, encoding=encoding, errors="replace", newline=None)
            while line := text.readline(_LONGEST):
                yield line
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror or error})") from error
