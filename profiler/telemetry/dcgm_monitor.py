"""dcgmi dmon: a column a field by its short name, a row an entity ("GPU 0", "GPU-I 3").

"#Entity GRACT SMACT …" heads the table, below it "ID" with units. There is no time in it. In the
row of a GPU a field counts the whole chip, in that of an instance its own slice.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from stallscope.profiler.line_stream import with_last
from stallscope.profiler.telemetry.dcgm_fields import FIELDS, with_busiest_pipe
from stallscope.profiler.telemetry.kept_rows import KeptRows
from stallscope.profiler.telemetry.query_csv import said
from stallscope.profiler.telemetry.rows import Row, Telemetry, counted, identity, left_out

HEADER = re.compile(r"#? *Entity +\w+.*")
_ROW = re.compile(r"(GPU|GPU-I|GPU-CI) +(\d+) +(\S.*)")


def read_dcgm_monitor(lines: Iterable[str]) -> Telemetry:
    """Read the rows of GPUs and GPU instances; those of other entities hold none of our fields."""
    rows = KeptRows()
    columns: list[tuple[str, int]] = []
    wrong, gpu, is_cut = 0, None, False
    for line, is_end in with_last(lines):
        text = line.expandtabs(8).rstrip()
        if HEADER.fullmatch(text.strip()):
            columns = [(m[0], m.start()) for m in re.finditer(r"\w+", text)][1:]
            continue
        found = _ROW.fullmatch(text.strip())
        if found is None or not columns or not rows.draws():
            continue
        cells = _cells(text, found[3], columns)
        is_last = is_end and not line.endswith(("\n", "\r", " "))
        if cells is None or (is_last and rows):  # its last number may lack digits
            is_cut, wrong = is_cut or is_last, wrong + (not is_last)
            continue
        gpu = found[2] if found[1] == "GPU" else gpu
        values, missing = counted(cells, FIELDS)
        name = said(cells.get("DVNAM"))
        instance = None if found[1] == "GPU" else f"{found[1]} {found[2]}"
        index = gpu if instance is None or gpu is not None else "?"
        rows.append(
            Row(None, identity(index, name, instance=instance), with_busiest_pipe(values), missing)
        )
    return rows.telemetry("DCGM", clock="none", notes=left_out(wrong), is_cut=is_cut)


def _cells(line: str, rest: str, columns: Sequence[tuple[str, int]]) -> dict[str, str] | None:
    """Return a row's cells by column: by their order, or by place where a name holds spaces."""
    words = rest.split()
    if len(words) == len(columns):
        return {name: word for (name, _), word in zip(columns, words, strict=True)}
    if len(words) < len(columns):
        return None
    ends = [*(start for _, start in columns[1:]), len(line)]
    return {name: line[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)}
