"""An nsys SQLite export as a trace: any subset of its tables, of schemas from 2021 on.

Tables and columns are documented in NVIDIA's "SQLite Export Schema Reference" of each version.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.nsys.calls import read_calls
from stallscope.profiler.nsys.copies import read_copies
from stallscope.profiler.nsys.database import Database, open_database
from stallscope.profiler.nsys.device_ids import DeviceIds
from stallscope.profiler.nsys.findings import findings
from stallscope.profiler.nsys.gpu_metrics import METRICS, read_gpu_metrics
from stallscope.profiler.nsys.kernels import GRAPH_TRACE, KERNEL, read_kernels
from stallscope.profiler.nsys.nvtx import NVTX, read_nvtx
from stallscope.profiler.nsys.os_calls import OSRT, joined, read_os_calls
from stallscope.profiler.nsys.session import Session, read_session
from stallscope.profiler.nsys.texts import Texts
from stallscope.profiler.nsys.threads import Threads
from stallscope.profiler.trace.far_times import far_finding, near_times
from stallscope.profiler.trace.timeline import Kernels, Trace

_OF_NSYS = (NVTX, OSRT, METRICS, "EXPORT_META_DATA", "ANALYSIS_DETAILS")
_PREFIXES = ("CUPTI_ACTIVITY_KIND_", "META_DATA_", "TARGET_INFO_")


def is_nsys_export(database: Database) -> bool:
    """Say whether a database has a table that nsys writes."""
    return any(name in _OF_NSYS or name.startswith(_PREFIXES) for name in database.tables)


def read_nsys_sqlite(path: str | PathLike[str]) -> Trace:
    """Read an export. What it cannot say is in the trace's findings.

    Raises InputError, one line, where the file cannot be read, is cut or damaged, is not nsys's, or
    holds values of wrong types.
    """
    path = Path(path)
    with open_database(path) as database:
        if not is_nsys_export(database):
            raise InputError(
                f"{path} is an SQLite file, but not an export of nsys; export the report with: "
                "nsys export --type sqlite"
            )
        return _trace(database)


def _trace(database: Database) -> Trace:
    session, threads, texts = read_session(database), Threads(), Texts()
    devices = DeviceIds(database)
    launches = read_calls(database, threads)
    kernels = read_kernels(database, launches, devices)
    copies, damaged_copies = read_copies(database, launches, devices)
    window_end_ns = None if session.window_ns is None else session.window_ns[1]
    nvtx = read_nvtx(database, threads, texts, window_end_ns)
    os_calls, damaged_os_calls = read_os_calls(database, threads, texts)
    waits = joined(nvtx.waits, os_calls)
    near = near_times(kernels.kernels, copies, launches.calls, (nvtx.marks, nvtx.operators, waits))
    marks, operators, waits = near.ranges
    series = read_gpu_metrics(database, devices)
    damaged = launches.damaged + kernels.damaged + damaged_copies + damaged_os_calls
    return Trace(
        kind="nsys",
        tool=session.tool,
        path=str(database.path),
        devices=devices.devices(database),
        threads=threads.labels(database),
        names=kernels.names,
        texts=texts.all(),
        kernels=near.kernels,
        copies=near.copies,
        calls=near.calls,
        marks=marks,
        operators=operators,
        waits=waits,
        series=series,
        rank=session.rank,
        window_ns=_window(session, near.kernels),
        unix_ns=session.unix_ns,
        traces_kernels=KERNEL in database.tables or GRAPH_TRACE in database.tables,
        findings=(*findings(database, kernels, nvtx, damaged), *far_finding(near)),
        facts={**session.facts, "nvtx_instants": nvtx.instants},
    )


def _window(session: Session, rows: Kernels) -> tuple[int, int] | None:
    """Return the recording's window, unless kernels ran outside: then it is on another clock."""
    window = session.window_ns
    if window is None or not len(rows):
        return window
    is_around = window[0] <= rows.start_ns.min() and rows.end_ns.max() <= window[1]
    return window if is_around else None
