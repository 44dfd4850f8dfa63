"""The table that nvidia-smi prints without options; one may stand below the other (watch, -l)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from stallscope.profiler.telemetry.kept_rows import KeptRows
from stallscope.profiler.telemetry.moments import wall_ns
from stallscope.profiler.telemetry.query_csv import said
from stallscope.profiler.telemetry.rows import Counter, Identity, Row, Telemetry, counted
from stallscope.profiler.telemetry.table_notes import TableNotes

START = re.compile(r"\| NVIDIA-SMI +\S+")
_DRIVER_MODELS = ("WDDM", "TCC", "MCDM")  # of Windows, where Linux shows its persistence mode
_MOST_LONG = 300  # the table is 93 letters wide at most
_DRIVER = re.compile(r"(?:Driver|KMD) Version: *(\S+)")
_GPU = re.compile(
    r"\| +(\d+) +(\S.*?) +(On|Off|N/A|WDDM|TCC|MCDM|ERR!) *\| +([0-9A-Fa-f:.]{7,16}) +\S+ *\|.*"
)
_VALUES = re.compile(
    r"\| *(?P<fan>\S+) +(?P<temp>\S+) +(?P<state>\S+) +(?P<draw>\S+) */ *(?P<limit>\S+) *\|"
    r" *(?P<used>\S+) */ *(?P<total>\S+) *\| *(?P<util>\S+) .*"
)
_INSTANCE = re.compile(
    r"\| +(\d+) +(\d+) +(\d+) +(\d+) +\| +(?P<used>\S+) */ *(?P<total>\S+) +\|.*"
)
_COUNTERS = (
    Counter("nvml_gpu_util", ("util",), "%"),
    Counter("memory_used_bytes", ("used",), "MiB"),
    Counter("memory_total_bytes", ("total",), "MiB"),
    Counter("power_mw", ("draw",), "W"),
    Counter("power_limit_mw", ("limit",), "W"),
    Counter("temperature_c", ("temp",), "C"),
)


def read_table(lines: Iterable[str]) -> Telemetry:
    """Read the rows of GPUs and of MIG instances; those of processes hold nothing measured."""
    drivers, seen, rows = set[str](), TableNotes(), KeptRows()
    rows.draw_from(_rows(lines, drivers, seen))
    driver = drivers.pop() if len(drivers) == 1 else None
    return rows.telemetry("nvidia-smi", driver=driver, notes=tuple(seen.sentences()))


def _rows(lines: Iterable[str], drivers: set[str], seen: TableNotes) -> Iterator[Row]:
    t_ns: int | None = None
    gpus: dict[str, Identity] = {}
    gpu: Identity | None = None
    for line in lines:
        line = line.strip()  # quoted by indenting it
        if "Version" in line and (found := _DRIVER.search(line)):
            drivers.add(found[1])
        if len(line) > _MOST_LONG:
            continue
        seen.see(line)
        t_ns = wall_ns(line) or t_ns
        if found := _GPU.fullmatch(line):
            name = None if found[2].endswith("...") else found[2]  # cut to fit
            model = found[3] if found[3] in _DRIVER_MODELS else None
            gpu = gpus[found[1]] = Identity(
                index=found[1], name=name, bus_id=said(found[4]), driver_model=model
            )
        elif gpu is not None and (found := _VALUES.fullmatch(line)):
            yield Row(t_ns, gpu, *counted(found.groupdict(), _COUNTERS))
            gpu = None
        elif (found := _INSTANCE.fullmatch(line)) and found[1] in gpus:
            whole = gpus[found[1]]
            device = Identity(
                index=whole.index,
                name=whole.name,
                bus_id=whole.bus_id,
                driver_model=whole.driver_model,
                instance=f"{found[2]}/{found[3]}",
            )
            yield Row(t_ns, device, *counted(found.groupdict(), _COUNTERS))
