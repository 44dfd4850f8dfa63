"""One GPU as nvidia-smi -q describes it, in text or XML: values by the path of their sections."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from stallscope.profiler.telemetry.moments import wall_ns
from stallscope.profiler.telemetry.query_csv import said
from stallscope.profiler.telemetry.rows import Counter, Identity, Row, counted
from stallscope.profiler.telemetry.smi_fields import reasons_mask


@dataclass(slots=True)
class Block:
    """One GPU in one report: its own values, and those of each MIG instance, by path."""

    bus_id: str | None
    index: int  # its place in the report: nvidia-smi lists GPUs by index
    timestamp: str = ""
    driver: str = ""
    cells: dict[str, str] = field(default_factory=dict)
    instances: list[dict[str, str]] = field(default_factory=list)


def block_rows(
    block: Block,
    counters: tuple[Counter, ...],
    *,
    keys: Mapping[str, str],
    renamed: Mapping[str, str],
) -> Iterator[Row]:
    """Yield a row for the GPU and for each instance.

    `keys` says where name, uuid and the instance's ids stand; `renamed` what memory is called in
    an instance.
    """
    t_ns = wall_ns(block.timestamp)
    values, missing = counted(block.cells, counters)
    mask = reasons_mask(block.cells)
    if mask is not None:
        values["clock_event_reasons"] = mask
    about: dict[str, Any] = {
        "index": str(block.index),
        "name": said(block.cells.get(keys["name"])),
        "uuid": said(block.cells.get(keys["uuid"])),
        "bus_id": said(block.bus_id),
        "driver_model": said(block.cells.get(keys["driver model"])),
        "is_partitioned": block.cells.get(keys["mig mode"]) == "Enabled",
    }
    yield Row(t_ns, Identity(**about), values, missing)
    for cells in block.instances:
        own = {_renamed(path, renamed): text for path, text in cells.items()}
        values, missing = counted(own, counters)
        ids = (own.get(keys["gpu instance"], "?"), own.get(keys["compute instance"], "?"))
        yield Row(t_ns, Identity(**about, instance="/".join(ids)), values, missing)


def _renamed(path: str, renamed: Mapping[str, str]) -> str:
    section, slash, leaf = path.partition("/")
    return renamed.get(section, section) + slash + leaf
