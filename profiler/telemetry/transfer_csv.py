"""Tables of PCIe traffic that loggers of benchmarks make of nvidia-smi dmon -s t, a row a GPU.

"timestamp_sec,…,gpu_id,tx_pci_mb_per_sec,rx_pci_mb_per_sec,…": Unix time in seconds, the GPU's
index, and megabytes a second from it and to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from stallscope.profiler.line_stream import UntilCut
from stallscope.profiler.telemetry.kept_rows import KeptRows
from stallscope.profiler.telemetry.query_csv import said, split_cells
from stallscope.profiler.telemetry.rows import (
    Counter,
    Row,
    Telemetry,
    counted,
    identity,
    left_out,
)

_TIME, _GPU = "timestamp_sec", "gpu_id"
_FIELDS = (
    Counter("pcie_tx_bytes_per_s", ("tx_pci_mb_per_sec",), "MB/s"),
    Counter("pcie_rx_bytes_per_s", ("rx_pci_mb_per_sec",), "MB/s"),
)


def is_header(line: str) -> bool:
    """Tell whether a line heads such a table."""
    names = _names(line)
    return {_TIME, _GPU} <= set(names) and any(f.sources[0] in names for f in _FIELDS)


def _names(line: str) -> list[str]:
    return [cell.strip().lower() for cell in line.split(",")]


def read_transfer_csv(lines: Iterable[str]) -> Telemetry:
    """Read a row for each GPU and second."""
    rows, names, wrong = KeptRows(), list[str](), 0
    whole = UntilCut(lines, lambda line: not line.endswith(("\n", "\r")))
    for line in whole:
        if _TIME in line.lower() and is_header(line):
            names = _names(line)
            continue
        if not names or not line.strip() or not rows.draws():
            continue
        cells = split_cells(line, ",")
        row = _row(dict(zip(names, cells, strict=True))) if len(cells) == len(names) else None
        if row is None:
            wrong += 1
        else:
            rows.append(row)
    notes = left_out(wrong)
    return rows.telemetry("nvidia-smi", clock="unix time", notes=notes, is_cut=whole.is_cut)


def _row(cells: Mapping[str, str]) -> Row | None:
    t_ns = _unix_ns(cells[_TIME])
    if t_ns is None:
        return None
    values, missing = counted(cells, _FIELDS)
    return Row(t_ns, identity(index=said(cells[_GPU])), values, missing)


def _unix_ns(cell: str) -> int | None:
    try:
        seconds = float(cell) if len(cell) < 30 else math.nan
    except ValueError:
        return None
    return round(seconds * 1e6) * 1000 if 0 < seconds < 1e10 else None
