"""nvidia-smi --query-gpu=… --format=csv, and what others make of it.

A header names the queries, with their units in brackets unless nounits was asked for; a row is one
GPU. With -l and -lms rows go on; scripts that append write the header again. Rows of
--query-compute-apps are processes. Where a system prints decimal commas, ", " still ends a cell.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache

from stallscope.profiler.line_stream import with_last
from stallscope.profiler.telemetry.kept_rows import KeptRows
from stallscope.profiler.telemetry.moments import wall_ns
from stallscope.profiler.telemetry.rows import Identity, Row, Telemetry, counted, left_out
from stallscope.profiler.telemetry.smi_fields import QUERY, reasons_mask

_HEADING = re.compile(r"([A-Za-z][\w.]*)\s*(?:\[([^\]]+)\])?")
_COMMA_SPACE = re.compile(r",\s+")
# Queries that nothing else calls so; a header has one at least.
_OWN = re.compile(
    r"(utilization\.(gpu|memory)|memory\.(used|free|total|reserved)|power\.draw(\.\w+)?|"
    r"clocks(\.\w+)+|temperature\.gpu|used_(gpu_)?memory|gpu_uuid|gpu_bus_id|pci\.bus_id)"
)
# One of these stands in each: rows are told from headers without a search.
_OWN_PARTS = (
    *("utilization.", "memory.", "power.draw", "clocks", "temperature.", "used_", "gpu_uuid"),
    *("gpu_bus_id", "pci.bus_id"),
)
_ALIASES = {"gpu_name": "name", "gpu_uuid": "uuid", "gpu_bus_id": "pci.bus_id", "gpu": "index"}
_IDENTITY = (
    *("index", "name", "uuid", "pci.bus_id", "mig.mode.current", "pid", "process_name"),
    "driver_model.current",
)
_NOBODY = "The rows do not say which GPU they are of: if it had several, they are mixed here."


def split_cells(line: str, delimiter: str) -> list[str]:
    """Split a row; with ", " between cells a comma alone is a decimal comma."""
    if delimiter == ", ":
        return [cell.strip() for cell in _COMMA_SPACE.split(line.strip())]
    if '"' not in line and "\0" not in line:
        return [cell.strip() for cell in line.rstrip("\r\n").split(delimiter)] if line else []
    try:
        row: list[str] = next(csv.reader([line.replace("\0", "")], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in row]


def delimiter_of(header: str) -> str:
    """Tell what stands between a header's cells."""
    for sign in (";", "\t"):
        if sign in header:
            return sign
    return ", " if ", " in header else ","


def heading(line: str) -> tuple[tuple[str, str | None], ...] | None:
    """Return the queries of a header with their units, or None if the line is none."""
    if line[:1].isdigit():  # as most rows begin, and no query does
        return None
    lower = line.lower()
    if not any(part in lower for part in _OWN_PARTS) or _OWN.search(lower) is None:
        return None
    cells = split_cells(line, delimiter_of(line))
    if any("=" in cell or "--" in cell for cell in cells):  # the command itself, not its header
        return None
    found = [_HEADING.fullmatch(cell) for cell in cells]
    names = [
        (m[1].lower(), m[2]) if m is not None else (cell.lower(), None)
        for m, cell in zip(found, cells, strict=True)
    ]
    if not any(_OWN.fullmatch(name) for name, _ in names):
        return None
    return tuple((_ALIASES.get(name, name), unit) for name, unit in names)


def read_query_csv(lines: Iterable[str]) -> Telemetry:
    """Read the rows under each header."""
    rows, drivers, says_which = KeptRows(), set[str](), False
    columns: tuple[tuple[str, str | None], ...] = ()
    delimiter, wrong, is_cut = ",", 0, False
    for line, is_end in with_last(lines):
        if not line.strip():
            continue
        if found := heading(line):
            columns, delimiter = found, delimiter_of(line)
            continue
        if not columns or not rows.draws():
            continue
        cells = _fitting(line, delimiter, len(columns))
        is_last = is_end and not line.endswith(("\n", "\r"))
        if cells is None or (is_last and rows and _may_go_on(cells[-1])):
            is_cut, wrong = is_cut or is_last, wrong + (not is_last)
            continue
        named = {
            name: cell if unit is None else _with_unit(cell, unit)
            for (name, unit), cell in zip(columns, cells, strict=True)
        }
        rows.append(row := _row(named))
        says_which = says_which or _says_which(row)
        drivers.add(named.get("driver_version", ""))
    notes = (*((_NOBODY,) if rows and not says_which else ()), *left_out(wrong))
    driver = next(iter(drivers - {""}), None) if len(drivers) == 1 else None
    return rows.telemetry("nvidia-smi", driver=driver, notes=notes, is_cut=is_cut)


def _fitting(line: str, delimiter: str, count: int) -> list[str] | None:
    if delimiter == ", ":  # nearly always: one blank behind each comma
        cells = [cell.strip() for cell in line.strip().split(", ")]
        if len(cells) == count:
            return cells
    for sign in dict.fromkeys((delimiter, ",", ", ")):
        cells = split_cells(line, sign)
        if len(cells) == count:
            return cells
    return None


def _may_go_on(cell: str) -> bool:
    """Tell whether a line may break off in its last cell: a number may lack digits."""
    return not cell or cell[-1].isdigit() or cell[-1] in ".,[ "


def _with_unit(cell: str, unit: str) -> str:
    """Put the header's unit behind a bare number."""
    is_bare = cell and cell[-1].isdigit() and not cell.startswith("0x")
    return f"{cell} {unit}" if is_bare else cell


def _row(cells: Mapping[str, str]) -> Row:
    values, missing = counted(cells, QUERY)
    if "clock_event_reasons" not in values and (mask := reasons_mask(cells)) is not None:
        values["clock_event_reasons"] = mask
        missing.pop("clock_event_reasons", None)
    return Row(wall_ns(cells.get("timestamp", "")), _device(cells), values, missing)


def _device(cells: Mapping[str, str]) -> Identity:
    return _identity(*(cells.get(name) for name in _IDENTITY))


@lru_cache(maxsize=1024)  # the same few devices in every row
def _identity(
    index: str | None,
    name: str | None,
    uuid: str | None,
    bus_id: str | None,
    mig_mode: str | None,
    pid: str | None,
    process: str | None,
    driver_model: str | None,
) -> Identity:
    number, called = said(pid), said(name)
    return Identity(
        index=said(index),
        name=called if number is None or process is not None else None,
        uuid=said(uuid),
        bus_id=said(bus_id),
        process=None if number is None else f"pid {number} {process or ''}".strip(),
        is_partitioned=mig_mode == "Enabled",
        driver_model=said(driver_model),
    )


def said(text: str | None) -> str | None:
    """Return what a cell says, None for the words that say nothing."""
    text = (text or "").strip()
    is_word = text.strip("[]").lower() in ("", "n/a", "-", "not supported", "unknown error")
    return None if is_word else text


def _says_which(row: Row) -> bool:
    return bool(row.device.index or row.device.uuid or row.device.bus_id)
