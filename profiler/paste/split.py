"""Split a paste into what each tool printed, line by line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from stallscope.profiler.benchmark.formats import blocks_of, has_results
from stallscope.profiler.file_kinds import InputKind
from stallscope.profiler.metrics_page.reader import has_page
from stallscope.profiler.server_log.client_block import tells_load
from stallscope.profiler.server_log.devices import named_in
from stallscope.profiler.server_log.reader import has_log
from stallscope.profiler.server_log.refused import is_raised
from stallscope.profiler.telemetry import dcgm_page
from stallscope.profiler.telemetry.formats import is_first_line
from stallscope.profiler.telemetry.moments import wall_ns

# What a table of nvidia-smi, CSV, dmon or `-q` goes on with; else the telemetry has ended.
_OF_A_TABLE = re.compile(r"\s*[|+#]|\s*\d+\s*[,\s]|\s*\S[^=]{0,60}\s:\s|\d{4}/\d\d/\d\d")
_OF_A_PAGE = re.compile(r"#|[A-Za-z_:][\w:]*(?:\{.*\})?\s+\S+\s*\d*\s*$")
_LONGEST = 1 << 20
_TRACEBACK, _TRACEBACK_LINES = "Traceback (most recent call last)", 200
_OTHERS = ("NVIDIA-SMI", "NVSMI LOG")  # no server writes these: where they stand, its log has ended


class Piece(NamedTuple):
    """Lines of one kind that stand together; `first` counts from 1. Kind None: nothing's."""

    kind: InputKind | None
    first: int
    lines: tuple[str, ...]

    @property
    def last(self) -> int:
        """The number of its last line."""
        return self.first + len(self.lines) - 1


def split(lines: Sequence[str]) -> list[Piece]:
    """Return the pieces of a text in its order; neighbours are of different kinds."""
    kinds: list[InputKind | None] = []
    present: InputKind | None = None
    inside_json = 0
    for place, line in enumerate(lines):
        if inside_json:
            inside_json -= 1
            kinds.append(InputKind.BENCHMARK)
            continue
        length = _json_lines(lines, place)
        if length:
            inside_json, present = length - 1, None
            kinds.append(InputKind.BENCHMARK)
            continue
        present = _kind(line, present)
        kinds.append(present)
    _give_devices(lines, kinds)
    _give_blocks(lines, kinds)
    return list(_grouped(lines, _with_heads(lines, _one_page(lines, kinds))))


def _give_devices(lines: Sequence[str], kinds: list[InputKind | None]) -> None:
    """Give lines that name the GPUs to the log beside them, which is read with them."""
    if InputKind.SERVER_LOG in kinds:
        for place, line in enumerate(lines):
            if kinds[place] is None and named_in(line):
                kinds[place] = InputKind.SERVER_LOG


def _give_blocks(lines: Sequence[str], kinds: list[InputKind | None]) -> None:
    """Give what a benchmark printed to the log beside it, which is read with it; else to no log."""
    blocks = blocks_of(lines)
    logged = [p for p, kind in enumerate(kinds) if kind is InputKind.SERVER_LOG]
    is_load = tells_load(lines[p] for p in logged)
    if blocks and not is_load and not any("rror" in lines[p] for p in logged):
        for place in logged:  # the client's own lines, which no server wrote
            kinds[place] = None
    for block in blocks:
        for place in block.places:
            kinds[place] = InputKind.SERVER_LOG if is_load else InputKind.BENCHMARK


def _kind(line: str, present: InputKind | None) -> InputKind | None:
    """Tell what a line is of: what it begins, else what it may go on with."""
    if len(line) > _LONGEST:
        return present
    if is_first_line(line):
        return InputKind.TELEMETRY
    if has_log([line]) or is_raised(line):
        return InputKind.SERVER_LOG
    if has_page([line]):
        return InputKind.METRICS
    if any(other in line for other in _OTHERS):
        return None
    if present is InputKind.TELEMETRY and line.strip() and not _OF_A_TABLE.match(line):
        return None
    if present is InputKind.METRICS and line.strip() and not _OF_A_PAGE.match(line):
        return None
    return present


def _json_lines(lines: Sequence[str], place: int) -> int:
    """Return how many lines from here on are results of a benchmark as a JSON object."""
    if not lines[place].startswith("{"):
        return 0
    found = _json_object(lines, place)
    return found.count("\n") + 1 if found and has_results(found) else 0


def _json_object(lines: Sequence[str], place: int) -> str | None:
    """Return the object that begins here: of as few lines as hold it, a paste may begin many."""
    taken, text = 1, lines[place]
    while True:
        try:
            _, end = json.JSONDecoder().raw_decode(text)
        except json.JSONDecodeError as error:
            is_cut = error.pos >= len(text.rstrip()) or error.msg.startswith("Unterminated string")
            if not is_cut or place + taken >= len(lines) or len(text) > _LONGEST:
                return None
            taken *= 4
            text = "".join(lines[place : place + taken])
        except (ValueError, RecursionError):
            return None
        else:
            return text[:end]


def _one_page(lines: Sequence[str], kinds: list[InputKind | None]) -> list[InputKind | None]:
    """Leave a dcgm-exporter's lines with the engine's, whose page they are read with."""
    if InputKind.METRICS not in kinds:
        return kinds
    return [
        InputKind.METRICS
        if kind is InputKind.TELEMETRY
        and (line.startswith(("# HELP", "# TYPE")) or dcgm_page.LINE.fullmatch(line.strip()))
        else kind
        for line, kind in zip(lines, kinds, strict=True)
    ]


def _with_heads(lines: Sequence[str], kinds: list[InputKind | None]) -> Sequence[InputKind | None]:
    """Give a table its rule and the date above it, and a page the comments above its samples."""
    for place in range(len(lines) - 1, 0, -1):
        kind, above = kinds[place], lines[place - 1]
        if kind is kinds[place - 1]:
            continue
        is_head = (kind is InputKind.METRICS and above.startswith("#")) or (
            kind is InputKind.TELEMETRY
            and (
                above.lstrip().startswith("+-")
                or (wall_ns(above) is not None and not has_log([above]))
            )
        )
        if is_head:
            kinds[place - 1] = kind
        elif kind is InputKind.SERVER_LOG and is_raised(lines[place]):
            _take_traceback(lines, kinds, place)
    return kinds


def _take_traceback(lines: Sequence[str], kinds: list[InputKind | None], place: int) -> None:
    """Give an error the calls above it, which say where it was raised."""
    for start in range(place - 1, max(-1, place - _TRACEBACK_LINES), -1):
        if kinds[start] is not None:
            return
        if _TRACEBACK in lines[start]:
            kinds[start:place] = [InputKind.SERVER_LOG] * (place - start)
            return


def _grouped(lines: Sequence[str], kinds: Sequence[InputKind | None]) -> Iterator[Piece]:
    begin = 0
    for place in range(1, len(lines) + 1):
        if place == len(lines) or kinds[place] is not kinds[begin]:
            yield Piece(kinds[begin], begin + 1, tuple(lines[begin:place]))
            begin = place
