"""Columns of tables whose rows begin and end."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.profiler.nsys.columns import read_columns
from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.growing import Columns, Kind

TIMES: Mapping[str, Kind] = {"start": "int64", "end": "int64"}
# What rows of work on a device have besides.
ON_DEVICE: Mapping[str, Kind] = {
    "deviceId": "int32",
    "streamId": "int32",
    "correlationId": "uint32",
    "globalPid": "coded",
}


def timed_columns(
    database: Database, name: str, kinds: Mapping[str, Kind], *, needed: tuple[str, ...] = ()
) -> Columns:
    """Return "start", "end" and the columns of these kinds, as read_columns does.

    Returns none where the export lacks the table, its times or a column that is needed.
    """
    table = database.tables.get(name)
    columns = {} if table is None else read_columns(database, table, {**TIMES, **kinds})
    return columns if all(key in columns for key in (*TIMES, *needed)) else {}
