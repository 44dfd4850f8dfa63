"""nvidia-smi -q: sections by indentation, one "key : value" a line.

Each report begins with "NVSMI LOG"; with -l reports follow upon each other, with -d they hold some
sections only. "MIG Device" heads the section of one instance.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from stallscope.profiler.line_stream import UntilCut
from stallscope.profiler.telemetry.blocks import Block, block_rows
from stallscope.profiler.telemetry.kept_rows import KeptRows
from stallscope.profiler.telemetry.rows import Telemetry
from stallscope.profiler.telemetry.smi_fields import TEXT

START = "NVSMI LOG"
_GPU = re.compile(r"GPU (?:\d+: ?)?([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)\s*")
_MOST_DEEP = 8
_INSTANCE = "mig device"
_KEYS = {
    "name": "product name",
    "uuid": "gpu uuid",
    "gpu instance": "gpu instance id",
    "mig mode": "mig mode/current",
    "driver model": "driver model/current",
    "compute instance": "compute instance id",
}
_RENAMED = {"shared fb memory usage": "fb memory usage"}


def read_query_text(lines: Iterable[str]) -> Telemetry:
    """Read every GPU of every report."""
    whole = UntilCut(lines, lambda line: line[-1].isdigit())  # it may lack digits
    rows, drivers = KeptRows(), set[str]()
    for block in _blocks(whole):
        drivers.add(block.driver)
        rows.draw_from(block_rows(block, TEXT, keys=_KEYS, renamed=_RENAMED))
    driver = drivers.pop() if len(drivers) == 1 else ""
    return rows.telemetry("nvidia-smi", driver=driver or None, is_cut=whole.is_cut)


def _blocks(lines: Iterable[str]) -> Iterator[Block]:
    head: dict[str, str] = {}
    block: Block | None = None
    path: list[tuple[int, str]] = []
    count = 0
    for line in lines:
        line = line.rstrip().expandtabs(4)
        if START in line:
            head, count = {}, 0
        if START in line or (found := _GPU.fullmatch(line)):
            if block is not None:
                yield block
            block, path = None, []
            if START not in line and found:
                block = Block(found[1], count, head.get("timestamp", ""), head.get("driver", ""))
                count += 1
            continue
        indent, key, value = _entry(line)
        if not key:
            continue
        if block is None:
            head["driver" if key == "driver version" else key] = value or ""
            continue
        path = [step for step in path if step[0] < indent][:_MOST_DEEP]
        if value is None:
            path.append((indent, key))
            if key == _INSTANCE:
                block.instances.append({})
            continue
        _store(block, [name for _, name in path], key, value)
        path.append((indent, key))  # "HW Slowdown : Not Active" has entries below it
    if block is not None:
        yield block


def _entry(line: str) -> tuple[int, str, str | None]:
    """Return a line's indent, its key and its value; None where it heads a section."""
    indent = len(line) - len(line.lstrip())
    key, sign, value = f"{line.strip()} ".partition(" : ")
    return indent, key.strip().lower(), value.strip() if sign else None


def _store(block: Block, sections: list[str], key: str, value: str) -> None:
    if sections and sections[0] == "processes":
        return
    is_instance = bool(sections) and sections[0] == _INSTANCE and bool(block.instances)
    cells = block.instances[-1] if is_instance else block.cells
    cells.setdefault("/".join([*sections[is_instance:], key]), value)
