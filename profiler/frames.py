"""A capture's tables as pandas frames with fixed, nullable dtypes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING

from stallscope.profiler.capture_schema import TABLES, Column

if TYPE_CHECKING:
    import pandas as pd

    from stallscope.profiler.capture import Capture

DTYPES: Mapping[str, Mapping[str, str]] = {
    name: {column.name: column.dtype for column in table.columns} for name, table in TABLES.items()
}


def frame(capture: Capture, table: str) -> pd.DataFrame:
    """Return one table of the capture as a frame; an empty table has the same dtypes."""
    import pandas as pd

    if table not in TABLES:
        raise ValueError(f"no table {table!r} in a capture; there are: {', '.join(TABLES)}")
    rows = getattr(capture, TABLES[table].attribute)
    return pd.DataFrame(
        {
            column.name: pd.Series(_values(rows, column), dtype=column.dtype)
            for column in TABLES[table].columns
        }
    )


def _values(rows: tuple[object, ...], column: Column) -> list[object]:
    values = [getattr(row, column.field) for row in rows]
    if column.field == "data":
        return [json.dumps(value) for value in values]
    return values
