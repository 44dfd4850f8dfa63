"""Tell what a file is from its content, never from its name."""

from __future__ import annotations

import codecs
import re
import sqlite3
from contextlib import closing
from enum import StrEnum
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.benchmark.formats import has_printed, has_results
from stallscope.profiler.capture_file import is_capture
from stallscope.profiler.metrics_page.foreign import page_kind
from stallscope.profiler.metrics_page.reader import has_page as has_metrics_page
from stallscope.profiler.ncu.pages import has_page
from stallscope.profiler.nsys.stats_tables import has_table
from stallscope.profiler.profiler_text import has_profiler_text
from stallscope.profiler.regular_file import check_readable, other_kind
from stallscope.profiler.run_table import has_run_table
from stallscope.profiler.runtime_lines import is_stamped, unstamped
from stallscope.profiler.server_log.client_block import tells_load
from stallscope.profiler.server_log.reader import has_log
from stallscope.profiler.server_log.records import is_records, texts_in
from stallscope.profiler.server_log.refused import is_raised
from stallscope.profiler.telemetry.formats import form_of
from stallscope.profiler.text_lines import decoded
from stallscope.profiler.unpacked import GZIP, unpacked


class InputKind(StrEnum):
    """What `diagnose` reads, as it is called in messages."""

    CAPTURE = "a capture of stallscope"
    NSYS_SQLITE = "an nsys trace exported to SQLite"
    NSYS_REPORT = "an nsys report"
    NSYS_STATS = "summaries of nsys stats"
    KINETO = "a trace of the PyTorch profiler"
    NCU_PAGE = "a page of ncu"
    NCU_REPORT = "an ncu report"
    TELEMETRY = "output of nvidia-smi or DCGM"
    METRICS = "an inference server's metrics"
    SERVER_LOG = "an inference server's log"
    BENCHMARK = "results of a benchmark"
    PROFILER_TEXT = "what a profiler printed"


TRACES = frozenset({InputKind.NSYS_SQLITE, InputKind.NSYS_REPORT, InputKind.KINETO})
SQLITE = b"SQLite format 3\0"
_FIRST_BYTES = (
    (b"NVIDIA Tegra Profiler Report ", InputKind.NSYS_REPORT),  # seen in files of 2024.6 and 2025.6
    (b"NVR\0", InputKind.NCU_REPORT),
)
_SIGNATURES = (
    (SQLITE, "an SQLite database that stallscope did not write"),
    (GZIP, "a gzip file"),
    (b"PK\x03\x04", "a zip file"),
    (b"%PDF", "a PDF"),
)
_NSYS_TABLES = re.compile(
    r"StringIds|NVTX_EVENTS|CUPTI_ACTIVITY_KIND_\w+|OSRT_API|GPU_METRICS|ENUM_NSYS_EVENT_TYPE"
)
# Not a table of TOML or INI, nor the stamp of a log's line.
_JSON_START = re.compile(r"\s*(\{|\[\s*([\[{\"\]-]|\d(?!\d{0,3}[-/])))")
# Keys that stand in front of or instead of traceEvents in what Kineto writes.
_TRACE_KEYS = re.compile(
    r'"(traceEvents|schemaVersion|deviceProperties|distributedInfo|baseTimeNanoseconds|traceName)"\s*:'
)
_BARE_EVENT = re.compile(r'\s*\[\s*\{[^{}]*"ph"\s*:')
SAMPLE_BYTES = 4096
TABLE_BYTES = 1 << 20  # within which a table begins: profiled programs print before ncu does
UNKNOWN = "a binary file of no kind known here"


def input_kind(path: Path) -> InputKind | None:
    """Return what `diagnose` can read the file as, None if nothing; InputError if it is none."""
    head = _head(path)
    for start, kind in _FIRST_BYTES:
        if head.startswith(start):
            return kind
    if head.startswith(SQLITE):
        if is_capture(path):
            return InputKind.CAPTURE
        return InputKind.NSYS_SQLITE if _is_nsys(path, head) else None
    text = decoded(_unzipped(head) if head.startswith(GZIP) else head)
    if is_records(text) and has_log(list(texts_in(text))):
        return InputKind.SERVER_LOG
    if not _is_trace(text) and has_results(text):
        return InputKind.BENCHMARK
    if _JSON_START.match(text):
        return InputKind.KINETO if _is_trace(text) else None
    lines = text.splitlines(keepends=True)
    if is_stamped(lines):
        lines = unstamped(lines)
        text = "".join(lines)
    if has_page(lines):
        return InputKind.NCU_PAGE
    if has_table(lines):
        return InputKind.NSYS_STATS
    if has_metrics_page(lines):
        return InputKind.METRICS
    if form_of(lines) is not None:
        return InputKind.TELEMETRY
    is_printed = has_printed(text)
    if has_log(lines) and (not is_printed or tells_load(lines)):
        return InputKind.SERVER_LOG
    if is_printed:
        return InputKind.BENCHMARK
    if has_profiler_text(lines):
        return InputKind.PROFILER_TEXT
    return InputKind.SERVER_LOG if any(map(is_raised, lines)) else None


def kind_of(path: Path) -> str:
    """Say in words what the file seems to be; raise InputError if there is nothing to read."""
    head = _head(path)[:SAMPLE_BYTES]
    if head.startswith(GZIP) and _unzipped(head).startswith(GZIP):
        return "a gzip file that is packed twice (gunzip it once)"
    signature = next((kind for start, kind in _SIGNATURES if head.startswith(start)), None)
    kind = signature or plain_kind(head)
    if kind != "a text file":
        return kind
    if has_run_table(decoded(head)):
        return "a table of runs, which stallscope compare reads"
    return page_kind(decoded(head)) or kind


def plain_kind(head: bytes) -> str:
    """Tell JSON, other text and the rest apart."""
    if not head:
        return "an empty file"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "a text file"
    try:
        text = head.decode("utf-8")
    except UnicodeDecodeError as error:
        text = head[: error.start].decode("utf-8")
        if error.start < len(head) - 3:  # more than a letter cut at the end of the sample
            return UNKNOWN
    if "\0" in text:
        return UNKNOWN
    return "a JSON file" if _JSON_START.match(text) else "a text file"


def _head(path: Path) -> bytes:
    if other_kind(path) == "a folder":
        raise InputError(f"{path}: is a folder; name a file in it")
    check_readable(path)
    try:
        with path.open("rb") as file:
            return file.read(TABLE_BYTES)
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from error


def _unzipped(head: bytes) -> bytes:
    """Return what the beginning of a gzip file holds, as far as it is whole."""
    found = b""
    for chunk in unpacked([head], TABLE_BYTES):
        found += chunk
        if len(found) >= TABLE_BYTES:
            break
    return found[:TABLE_BYTES]


def _is_nsys(path: Path, head: bytes) -> bool:
    """Look for nsys's tables; in a damaged file their names may still stand in its first pages."""
    try:
        uri = f"{path.resolve().as_uri()}?mode=ro&immutable=1"
        with closing(sqlite3.connect(uri, uri=True)) as db:
            db.execute("PRAGMA trusted_schema=OFF")
            db.text_factory = lambda raw: raw.decode(errors="replace")
            names = [name for (name,) in db.execute("SELECT name FROM sqlite_master")]
    except (sqlite3.Error, UnicodeDecodeError):  # messages that quote broken bytes
        return _NSYS_TABLES.search(head.decode("latin-1")) is not None
    return any(_NSYS_TABLES.fullmatch(name) for name in names)


def _is_trace(text: str) -> bool:
    return bool(_TRACE_KEYS.search(text) or _BARE_EVENT.match(text))
