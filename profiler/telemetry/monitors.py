"""nvidia-smi dmon and pmon: a column a counter, a row a GPU or a process, a header now and then.

Columns depend on -s and on the driver; -o adds date and time in front. With --format csv commas
stand between the cells.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stallscope.profiler.line_stream import with_last
from stallscope.profiler.telemetry.kept_rows import KeptRows
from stallscope.profiler.telemetry.moments import wall_ns
from stallscope.profiler.telemetry.query_csv import said
from stallscope.profiler.telemetry.rows import (
    Counter,
    Row,
    Telemetry,
    counted,
    identity,
    left_out,
)

HEADER = re.compile(r"# ?(?:Date,? +)?(?:Time,? +)?gpu\b.*", re.IGNORECASE)
_DEVICE = (
    Counter("nvml_gpu_util", ("sm",), "%"),
    Counter("nvml_memory_util", ("mem",), "%"),
    Counter("memory_used_bytes", ("fb",), "MiB"),
    Counter("power_mw", ("pwr",), "W"),
    Counter("temperature_c", ("gtemp", "temp"), "C"),
    Counter("sm_clock_hz", ("pclk",), "MHz"),
    Counter("memory_clock_hz", ("mclk",), "MHz"),
    Counter("pcie_rx_bytes_per_s", ("rxpci",), "MB/s"),
    Counter("pcie_tx_bytes_per_s", ("txpci",), "MB/s"),
)
_PROCESS = (
    Counter("process_sm_util", ("sm",), "%"),
    Counter("process_memory_bytes", ("fb",), "MiB"),
)
_DAY_NS = 86_400_000_000_000


def read_monitor(lines: Iterable[str]) -> Telemetry:
    """Read dmon's or pmon's rows under each header."""
    rows = KeptRows()
    columns: list[str] = []
    wrong, days, is_cut, has_process, has_values = 0, 0, False, False, False
    last: int | None = None
    for line, is_end in with_last(lines):
        if line.lstrip().startswith("#"):
            if HEADER.fullmatch(line.strip()):
                columns = _cells(line.strip().lstrip("#").lower())
            continue
        if not columns or not line.strip() or not rows.draws():
            continue
        cells = _cells(line)
        if len(cells) > len(columns) and columns[-1] in ("command", "name"):
            cells = [*cells[: len(columns) - 1], " ".join(cells[len(columns) - 1 :])]
        is_last = is_end and not line.endswith(("\n", "\r", " "))
        if len(cells) != len(columns) or (is_last and rows):  # its last number may lack digits
            is_cut, wrong = is_cut or is_last, wrong + (not is_last)
            continue
        named = dict(zip(columns, cells, strict=True))
        t_ns = _time(named)
        if t_ns is not None and "date" not in named:
            days += last is not None and t_ns + _DAY_NS / 2 < last
            last, t_ns = t_ns, t_ns + days * _DAY_NS
        has_process = has_process or "pid" in named
        if (row := _row(t_ns, named)) is not None:
            rows.append(row)
            has_values = has_values or bool(row.values)
    notes = list(left_out(wrong))
    if has_process and not has_values:
        notes.append("nvidia-smi pmon saw no process at work on a GPU while it ran.")
    return rows.telemetry("nvidia-smi", notes=notes, is_cut=is_cut)


def _cells(line: str) -> list[str]:
    if "," in line:
        return [cell.strip() for cell in line.split(",")]
    return line.split()


def _time(named: Mapping[str, str]) -> int | None:
    clock = named.get("time")
    if clock is None:
        return None
    return wall_ns(f"{named.get('date', '19700101')} {clock}")


def _row(t_ns: int | None, named: Mapping[str, str]) -> Row | None:
    index = said(named.get("gpu"))
    if index is None or not index.isdigit():
        return None
    if "pid" not in named:
        ids = [i for key in ("gi", "ci", "mig") if (i := said(named.get(key))) is not None]
        device = identity(index=index, instance="/".join(ids) or None)
        return Row(t_ns, device, *counted(named, _DEVICE))
    pid = said(named["pid"])
    if pid is None:
        return Row(t_ns, identity(index=index))
    who = f"pid {pid} {named.get('command', named.get('name', ''))}".strip()
    return Row(t_ns, identity(index=index, process=who), *counted(named, _PROCESS))
