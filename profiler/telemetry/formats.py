"""Tell which tool printed a text, and in which form; and read it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from itertools import chain, islice

from stallscope.errors import InputError
from stallscope.profiler.telemetry import (
    dcgm_monitor,
    dcgm_page,
    dcgm_values,
    monitors,
    query_csv,
    query_text,
    query_xml,
    smi_table,
    transfer_csv,
    unheaded,
)
from stallscope.profiler.telemetry.rows import Telemetry

_TELLING = 20_000  # rows that tell which column is which
WITHIN = 60  # lines in which the form shows: what a shell printed may stand before
_MOST_LONG = 20_000  # letters of a line: all that can be queried are half of it


class Form(StrEnum):
    """What is read, as it is called in messages."""

    QUERY_CSV = "CSV of nvidia-smi --query-gpu"
    UNHEADED = "CSV of nvidia-smi --query-gpu without its header"
    QUERY_TEXT = "a report of nvidia-smi -q"
    QUERY_XML = "a report of nvidia-smi -q -x"
    TABLE = "the table of nvidia-smi"
    MONITOR = "what nvidia-smi dmon or pmon prints"
    DCGM_MONITOR = "what dcgmi dmon prints"
    DCGM_PAGE = "a page of dcgm-exporter"
    DCGM_VALUES = "a table of DCGM's values"
    TRANSFER_CSV = "a table of PCIe traffic"


_MARKS: tuple[tuple[Form, Callable[[str], object]], ...] = (
    (Form.QUERY_XML, lambda line: query_xml.START in line),
    (Form.QUERY_TEXT, lambda line: query_text.START in line and "=" in line),
    (Form.TABLE, lambda line: smi_table.START.match(line)),
    (Form.MONITOR, lambda line: monitors.HEADER.fullmatch(line)),
    (Form.DCGM_MONITOR, lambda line: dcgm_monitor.HEADER.fullmatch(line)),
    (Form.DCGM_PAGE, lambda line: dcgm_page.LINE.fullmatch(line)),
    (Form.DCGM_VALUES, dcgm_values.is_header),
    (Form.TRANSFER_CSV, transfer_csv.is_header),
    (Form.QUERY_CSV, query_csv.heading),
)


def form_of(lines: Sequence[str]) -> Form | None:
    """Tell the form from the first lines; None where no tool of these printed them."""
    head = [line.strip() for line in lines[:WITHIN]]
    for line in head:
        for form, is_mark in _MARKS:
            if (len(line) < _MOST_LONG or form is Form.QUERY_XML) and is_mark(line):
                return form
    return Form.UNHEADED if unheaded.is_unheaded(head) else None


def is_first_line(line: str) -> bool:
    """Tell whether one of these tools begins with such a line."""
    line = line.strip()
    return len(line) < _MOST_LONG and any(is_mark(line) for _, is_mark in _MARKS)


def read_form(form: Form, lines: Iterable[str]) -> Telemetry:
    """Read text of a form; raise InputError where it cannot be used."""
    if form is Form.UNHEADED:
        return _unheaded(lines)
    return _READERS[form](lines)


_READERS: dict[Form, Callable[[Iterable[str]], Telemetry]] = {
    Form.QUERY_XML: query_xml.read_query_xml,
    Form.QUERY_CSV: query_csv.read_query_csv,
    Form.QUERY_TEXT: query_text.read_query_text,
    Form.TABLE: smi_table.read_table,
    Form.MONITOR: monitors.read_monitor,
    Form.DCGM_MONITOR: dcgm_monitor.read_dcgm_monitor,
    Form.DCGM_PAGE: dcgm_page.read_dcgm_page,
    Form.DCGM_VALUES: dcgm_values.read_dcgm_values,
    Form.TRANSFER_CSV: transfer_csv.read_transfer_csv,
}


def _unheaded(lines: Iterable[str]) -> Telemetry:
    import dataclasses

    lines = iter(lines)
    first = list(islice(lines, _TELLING))
    header = unheaded.header_of(first)
    if header is None:
        raise InputError(
            "rows of nvidia-smi without their header: put the queries, as in "
            '"timestamp, utilization.gpu [%], power.draw [W]", in a line above them'
        )
    found = query_csv.read_query_csv(chain([header + "\n"], first, lines))
    note = f'The rows have no header; by their units they were taken for "{header}".'
    return dataclasses.replace(found, notes=(note, *found.notes))
