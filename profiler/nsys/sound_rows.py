"""Rows whose times can be used."""

from __future__ import annotations

from typing import Any

import numpy as np

from stallscope.profiler.nsys.growing import Coded, Columns
from stallscope.profiler.nsys.page_rows import MISSING, Rare


def sound(columns: Columns) -> tuple[dict[str, Any], int]:
    """Drop rows without both times or that end before they start; return how many those were."""
    start, end = columns["start"], columns["end"]
    if not len(start) or (start.min() != MISSING and not np.any(end < start)):
        return dict(columns), 0
    kept = (start != MISSING) & (end >= start)
    return {name: _chosen(column, kept) for name, column in columns.items()}, int((~kept).sum())


def _chosen(column: Any, kept: Any) -> Any:
    if isinstance(column, Coded):
        return Coded(column.code[kept], column.values)
    if isinstance(column, Rare):
        stays = kept[column.rows]
        return Rare((np.cumsum(kept) - 1)[column.rows[stays]], column.values[stays])
    return column[kept]
