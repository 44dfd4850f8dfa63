"""Pages of dcgm-exporter: Prometheus text, a line a field and entity.

Labels name the GPU (gpu, UUID, modelName, Hostname) and, of a MIG instance, GPU_I_ID and
GPU_I_PROFILE. Several pages in one file are told apart by "# scrape_unix_ms N", or by a line that
comes again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from stallscope.profiler.line_stream import UntilCut
from stallscope.profiler.telemetry.dcgm_fields import FIELDS, with_busiest_pipe
from stallscope.profiler.telemetry.kept_rows import KeptRows
from stallscope.profiler.telemetry.query_csv import said
from stallscope.profiler.telemetry.rows import Identity, Row, Telemetry, counted, identity

LINE = re.compile(r"(DCGM_FI_\w+)\{([^}]*)\} +(\S+)(?: +([0-9]{10,13}))?")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SCRAPE = re.compile(r"# ?scrape_unix_ms[ =:]+([0-9]{10,13})\b")
_MOST_LONG = 4096
_MS = 1_000_000


def read_dcgm_page(lines: Iterable[str]) -> Telemetry:
    """Read each page: one row for each entity on it."""
    rows, is_timed = KeptRows(), False
    drivers: set[str] = set()
    page: dict[Identity, dict[str, str]] = {}
    t_ns: int | None = None
    whole = UntilCut(lines, _breaks_off)
    for line in whole:
        line = line.strip()
        if found := _SCRAPE.match(line):
            rows.draw_from(_rows(page, t_ns))
            page, t_ns = {}, int(found[1]) * _MS
        found = LINE.fullmatch(line) if len(line) < _MOST_LONG else None
        if found is None:
            continue
        labels = dict(_LABEL.findall(found[2]))
        device = _device(labels)
        if found[1] in page.get(device, ()):
            rows.draw_from(_rows(page, t_ns))
            page, t_ns = {}, None
        if found[4]:
            t_ns = int(found[4]) * _MS
        is_timed = is_timed or t_ns is not None
        page.setdefault(device, {})[found[1]] = found[3]
        drivers.add(labels.get("DCGM_FI_DRIVER_VERSION", ""))
    rows.draw_from(_rows(page, t_ns))
    driver = next(iter(drivers - {""}), None) if len(drivers) == 1 else None
    clock = "unix time" if is_timed else "none"
    return rows.telemetry("DCGM", clock=clock, driver=driver, is_cut=whole.is_cut)


def _device(labels: Mapping[str, str]) -> Identity:
    instance = said(labels.get("GPU_I_ID"))
    profile = said(labels.get("GPU_I_PROFILE"))
    if instance is not None and profile is not None:
        instance = f"{instance} {profile}"
    return identity(
        index=said(labels.get("gpu")),
        name=said(labels.get("modelName")),
        uuid=said(labels.get("UUID", labels.get("uuid"))),
        bus_id=said(labels.get("pci_bus_id")),
        host=said(labels.get("Hostname")),
        instance=instance,
    )


def _rows(page: Mapping[Identity, Mapping[str, str]], t_ns: int | None) -> list[Row]:
    rows = []
    for device, cells in page.items():
        values, missing = counted(cells, FIELDS)
        rows.append(Row(t_ns, device, with_busiest_pipe(values), missing))
    return rows


def _breaks_off(line: str) -> bool:
    """Tell whether a last line breaks off: its number may lack digits."""
    return line.startswith("DCGM_FI_") and not line.endswith(("\n", "\r"))
