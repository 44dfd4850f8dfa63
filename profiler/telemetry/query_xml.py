"""nvidia-smi -q -x: one document a report, schema nvsmi_device_v4 to v13.

With -l documents follow upon each other in one file. A document that breaks off is read as far as
it goes. Documents that declare entities are refused: nvidia-smi writes none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import cast
from xml.etree.ElementTree import Element, ParseError, XMLPullParser

from stallscope.errors import InputError
from stallscope.profiler.telemetry.blocks import Block, block_rows
from stallscope.profiler.telemetry.kept_rows import KeptRows
from stallscope.profiler.telemetry.rows import Telemetry
from stallscope.profiler.telemetry.smi_fields import XML

START, END = "<nvidia_smi_log", "</nvidia_smi_log>"
_KEYS = {
    "name": "product_name",
    "uuid": "uuid",
    "gpu instance": "gpu_instance_id",
    "mig mode": "mig_mode/current_mig",
    "driver model": "driver_model/current_dm",
    "compute instance": "compute_instance_id",
}
_INSTANCE = ["mig_devices", "mig_device"]
_MOST_DEEP = 32
_MOST_LETTERS = 16 << 20  # of a document, which is 10,000 a GPU; what follows is left out
_CONTROL = re.compile(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read_query_xml(lines: Iterable[str]) -> Telemetry:
    """Read every GPU of every document; raise InputError where a document declares entities."""
    rows, drivers, is_cut = KeptRows(), set[str](), False
    for document, has_end in _documents(lines):
        if "<!ENTITY" in document:
            raise InputError("the XML declares entities, which nvidia-smi never does: not read")
        begin = document.find(START)
        if begin < 0:
            continue
        blocks, is_whole = _blocks(document[begin:] + END)
        is_cut = is_cut or not is_whole or not has_end
        for block in blocks:
            drivers.add(block.driver)
            rows.draw_from(block_rows(block, XML, keys=_KEYS, renamed={}))
    driver = drivers.pop() if len(drivers) == 1 else ""
    return rows.telemetry("nvidia-smi", driver=driver or None, is_cut=is_cut)


def _documents(lines: Iterable[str]) -> Iterator[tuple[str, bool]]:
    """Yield what stands before each end of a document, and behind the last; has it its end?"""
    parts: list[str] = []
    size = 0
    for line in lines:
        *ended, rest = line.split(END)
        for part in ended:
            yield "".join((*parts, part)), True
            parts, size = [], 0
        if size < _MOST_LETTERS:
            parts.append(rest)
            size += len(rest)
    yield "".join(parts), False


def _blocks(document: str) -> tuple[list[Block], bool]:
    """Return a document's GPUs, and whether it is whole."""
    blocks: list[Block] = []
    head: dict[str, str] = {}
    path: list[str] = []
    parser: XMLPullParser[Element] = XMLPullParser(events=("start", "end"))
    parser.feed(_CONTROL.sub(" ", document))
    is_whole = False
    for event, element in _events(parser):
        if event == "start":
            path.append(element.tag)
            _begin(path, element, blocks)
        else:
            _end(path, element, blocks, head)
            path.pop()
            element.clear()
            is_whole = not path
    for block in blocks:
        block.timestamp, block.driver = head.get("timestamp", ""), head.get("driver_version", "")
    return blocks, is_whole


def _events(parser: XMLPullParser[Element]) -> Iterator[tuple[str, Element]]:
    """Yield events up to where the document breaks off."""
    try:
        for pair in parser.read_events():
            yield cast("tuple[str, Element]", pair)
    except ParseError:
        return


def _begin(path: list[str], element: Element, blocks: list[Block]) -> None:
    if path[1:] == ["gpu"]:
        blocks.append(Block(element.get("id"), len(blocks)))
    elif blocks and path[2:] == _INSTANCE:
        blocks[-1].instances.append({})


def _end(path: list[str], element: Element, blocks: list[Block], head: dict[str, str]) -> None:
    value = (element.text or "").strip()
    if len(path) == 2:
        head.setdefault(element.tag, value)
    elif len(path) > 2 and path[1] == "gpu" and value and blocks and len(path) < _MOST_DEEP:
        inner, cells = path[2:], blocks[-1].cells
        if inner[:2] == _INSTANCE and blocks[-1].instances:
            inner, cells = inner[2:], blocks[-1].instances[-1]
        if inner:
            cells.setdefault("/".join(inner), value)
