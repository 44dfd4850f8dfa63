"""Hardware metrics that nsys samples on the device (--gpu-metrics-devices)."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from stallscope.profiler.nsys.columns import read_columns
from stallscope.profiler.nsys.database import Database
from stallscope.profiler.nsys.device_ids import DeviceIds
from stallscope.profiler.nsys.page_rows import MISSING
from stallscope.profiler.trace.timeline import Series

METRICS = "GPU_METRICS"
METRIC_NAMES = "TARGET_INFO_GPU_METRICS"
# Names differ by GPU and version ("SM Active", "SMs Active [Throughput %]"); those that end in
# another unit than per cent are other quantities.
_SERIES = tuple(
    (name, re.compile(pattern + r"(?: \[throughput %\])?$", re.IGNORECASE))
    for name, pattern in (
        ("nsys_gr_active", r"gr active"),
        ("nsys_sm_active", r"sms? active"),
        ("nsys_sm_issue", r"sms? issue"),
        ("nsys_tensor_active", r"tensor active(?: / fp16 active)?"),
        ("nsys_dram_read", r"dram read (?:bandwidth|throughput)"),
        ("nsys_dram_write", r"dram write (?:bandwidth|throughput)"),
    )
)
_DEVICE = 0xFF  # the lowest bits of a typeId are the device's number
_WHOLE = 100.0  # per cent


def read_gpu_metrics(database: Database, devices: DeviceIds) -> tuple[Series, ...]:
    """Read the metrics that we name, as fractions. Samples below 0 and above 100 % are no samples.

    Read and write bandwidth of the same moment sum up to `nsys_dram_throughput`.
    """
    table = database.tables.get(METRICS)
    clock = None if table is None else table.first("timestamp", "rawTimestamp")
    if table is None or clock is None:
        return ()
    columns = read_columns(
        database,
        table,
        {clock: "int64", "typeId": "coded", "metricId": "int32", "value": "float64"},
    )
    if not {"typeId", "metricId", "value"} <= columns.keys():
        return ()
    t_ns, types, metrics, value = (columns[c] for c in (clock, "typeId", "metricId", "value"))
    sound = (t_ns != MISSING) & (value >= 0.0) & (value <= _WHOLE)
    found: list[Series] = []
    wanted = list(_wanted(database))
    for code, type_id in enumerate(types.values.tolist()):
        of_type = np.flatnonzero((types.code == code) & sound)
        names = {metric: name for of, metric, name in wanted if of in (None, type_id)}
        for metric, name in sorted(names.items(), key=lambda item: item[1]):
            rows = of_type[metrics[of_type] == metric]
            if len(rows):
                rows = rows[np.argsort(t_ns[rows], kind="stable")]
                device = devices.place(type_id & _DEVICE)
                found.append(Series(device, name, "fraction", t_ns[rows], value[rows] / _WHOLE))
    return (*found, *_throughputs(found))


def _wanted(database: Database) -> Iterator[tuple[int | None, int, str]]:
    """Yield type, number and our name of each metric that we know; type None: of any."""
    for type_id, metric, text in database.rows(METRIC_NAMES, ("typeId", "metricId", "metricName")):
        name = next((n for n, pattern in _SERIES if pattern.match(str(text).strip())), None)
        if name is not None and isinstance(metric, int):
            yield type_id, metric, name


def _throughputs(found: list[Series]) -> Iterator[Series]:
    reads = {s.device: s for s in found if s.name == "nsys_dram_read"}
    writes = {s.device: s for s in found if s.name == "nsys_dram_write"}
    for device in sorted(reads.keys() & writes.keys()):
        read, write = reads[device], writes[device]
        t_ns, at_read, at_write = np.intersect1d(read.t_ns, write.t_ns, return_indices=True)
        value = read.value[at_read] + write.value[at_write]
        yield Series(device, "nsys_dram_throughput", "fraction", t_ns, value)
