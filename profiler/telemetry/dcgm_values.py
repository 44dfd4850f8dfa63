"""Tables of one value a row, as scripts write them with DCGM's bindings.

"GPUId,TimeStampUs,Field,Values": the GPU's index, Unix time in microseconds, DCGM's tag of the
field, the value. A value is written when it is new, so fields have times of their own.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

from stallscope.profiler.telemetry.dcgm_fields import FIELDS
from stallscope.profiler.telemetry.kept_rows import KeptRows
from stallscope.profiler.telemetry.rows import Row, Telemetry, counted, identity, left_out

_MICROSECONDS = re.compile(r"[0-9]{1,16}")
HEADER = ("gpuid", "timestampus", "field", "values")


def is_header(line: str) -> bool:
    """Tell whether a line heads such a table."""
    if line[:1].isdigit():  # as rows begin
        return False
    return tuple(cell.strip().lower() for cell in line.split(",")) == HEADER


def read_dcgm_values(lines: Iterable[str]) -> Telemetry:
    """Read a row a value; tags of no counter of ours are left out."""
    rows = KeptRows()
    wrong = 0
    for line in lines:
        if not line.strip() or is_header(line) or not rows.draws():
            continue
        cells = _cells(line)
        if len(cells) != len(HEADER) or not _MICROSECONDS.fullmatch(cells[1]):
            wrong += 1
            continue
        index, stamp, tag, value = cells
        values, missing = counted({tag: value}, FIELDS)
        if values or missing:
            t_ns = int(stamp) * 1000
            rows.append(Row(t_ns, identity(index=index or None), values, missing))
    return rows.telemetry("DCGM", clock="unix time", notes=left_out(wrong))


def _cells(line: str) -> list[str]:
    if '"' not in line and "\0" not in line:
        return [cell.strip() for cell in line.split(",")] if line.strip("\r\n") else []
    try:
        row: list[str] = next(csv.reader([line.replace("\0", "")]), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in row]
