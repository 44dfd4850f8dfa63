"""Tables of one value a row, as scripts write them with DCGM's bindings.

"GPUId,TimeStampUs,Field,Values": the GPU's index, Unix time in microseconds, DCGM's tag of the
field, the value. A value is written when it is new, so fields have times of their own.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence

from stallscope.profiler.telemetry.dcgm_fields import FIELDS
from stallscope.profiler.telemetry.rows import Identity, Row, Telemetry, counted, left_out

_MICROSECONDS = re.compile(r"[0-9]{1,16}")
HEADER = ("gpuid", "timestampus", "field", "values")


def is_header(line: str) -> bool:
    """Tell whether a line heads such a table."""
    return tuple(cell.strip().lower() for cell in line.split(",")) == HEADER


def read_dcgm_values(lines: Sequence[str]) -> Telemetry:
    """Read a row a value; tags of no counter of ours are left out."""
    rows: list[Row] = []
    wrong = 0
    for line in lines:
        cells = _cells(line)
        if is_header(line) or not cells:
            continue
        if len(cells) != len(HEADER) or not _MICROSECONDS.fullmatch(cells[1]):
            wrong += 1
            continue
        index, stamp, tag, value = cells
        values, missing = counted({tag: value}, FIELDS)
        if values or missing:
            t_ns = int(stamp) * 1000
            rows.append(Row(t_ns, Identity(index=index or None), values, missing))
    return Telemetry("DCGM", tuple(rows), clock="unix time", notes=left_out(wrong))


def _cells(line: str) -> list[str]:
    try:
        row: list[str] = next(csv.reader([line.replace("\0", "")]), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in row]
