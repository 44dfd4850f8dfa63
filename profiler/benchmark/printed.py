"""The block that vLLM's `bench serve` and SGLang's `bench_serving` print when they are done."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from stallscope.profiler.benchmark.figures import Row, number

BEFORE = r"(?:\x1b\[[0-9;]*m|[ \t>#|])*"  # colours, and the marks of a quotation
HEADER = re.compile(rf"^{BEFORE}={{3,}} Serving Benchmark Result ={{3,}}", re.MULTILINE)
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_END = re.compile(r"={20,}")
_FIGURE = re.compile(r"(?P<label>[A-Za-z][^:]{0,60}?)\s*:\s+(?P<value>\S.*)")
_LATENCY = re.compile(
    r"(?P<figure>mean|median|max|p\d+) (?P<of>ttft|tpot|itl|e2el|e2e latency) \((?P<unit>ms|s)\)"
)
# The load is printed before the requests are sent; later versions repeat it in the block.
_LOAD = {
    "traffic request rate": "request_rate",
    "maximum request concurrency": "max_concurrency",
    "max request concurrency": "max_concurrency",
    "max reqeuest concurrency": "max_concurrency",  # SGLang's until 2025
}
_CALLED = {
    **_LOAD,
    "request rate configured (rps)": "request_rate",
    "successful requests": "completed",
    "failed requests": "failed",
    "benchmark duration (s)": "duration",
    "total input tokens": "total_input_tokens",
    "total generated tokens": "total_output_tokens",
    "request throughput (req/s)": "request_throughput",
    "input token throughput (tok/s)": "input_throughput",
    "output token throughput (tok/s)": "output_throughput",
    "concurrency": "concurrency",
    "accept length": "accept_length",
    "acceptance length": "spec_decode_acceptance_length",
}
_MARK = "printed"


class Block(NamedTuple):
    """One block as a row of results has it, and the places of its lines from 0."""

    row: Row
    places: tuple[int, ...]


def has_printed(text: str) -> bool:
    """Tell whether text holds such a block."""
    return HEADER.search(text) is not None


def is_printed(row: Row) -> bool:
    """Tell whether a row was printed, and of tokens: other tasks print such a block too."""
    figures = [name for name in row if name == "output_throughput" or "_ttft" in name]
    figures += [name for name in row if "_tpot" in name or "_itl" in name or "_e2e" in name]
    return _MARK in row and any(number(row, name) for name in figures)


def blocks_of(lines: Iterable[str]) -> Iterator[Block]:
    """Yield the blocks of a text; one that breaks off ends where other text begins."""
    load: dict[str, str] = {}
    row: dict[str, str] | None = None
    places: list[int] = []
    for place, line in enumerate(lines):
        if HEADER.match(line):
            if row is not None:
                yield _block(row, places)
                load, places = {}, []
            row, places = {_MARK: "yes", **load}, [*places, place]
            continue
        if row is None:
            found = _figure(line) if "equest" in line else None
            if found is not None and found[0] in _LOAD:
                load[_LOAD[found[0]]] = found[1]
                places.append(place)
            continue
        text, found = plain(line), _figure(line)
        if text and found is None and not _is_rule(text) and not _END.fullmatch(text):
            yield _block(row, places)
            row, load, places = None, {}, []
            continue
        places.append(place)
        if found is not None and (name := _name(found[0])) is not None:
            row[name] = found[1]
        if _END.fullmatch(text):
            yield _block(row, places)
            row, load, places = None, {}, []
    if row is not None:
        yield _block(row, places)


def _block(row: dict[str, str], places: list[int]) -> Block:
    """Leave out the rate of requests where count and time tell it: it has but two decimals."""
    if number(row, "completed") and number(row, "duration"):
        row = {name: value for name, value in row.items() if name != "request_throughput"}
    return Block(row, tuple(places))


def _is_rule(text: str) -> bool:
    """Tell whether a line heads a section: dashes at both ends, and no figure between."""
    return text.startswith("---") and text.endswith("---")


def plain(line: str) -> str:
    """Return a line without colours, marks of quotation and what frames it."""
    text = _COLOUR.sub("", line) if "\x1b" in line else line
    return text.strip().lstrip("># |\t").rstrip("| \t")


def _figure(line: str) -> tuple[str, str] | None:
    """Return a line's label in small letters and the first word of its value."""
    found = _FIGURE.fullmatch(plain(line))
    if found is None:
        return None
    return " ".join(found["label"].lower().split()), found["value"].split()[0]


def _name(label: str) -> str | None:
    found = _LATENCY.fullmatch(label)
    if found is None:
        return _CALLED.get(label)
    unit = "_ms" if found["unit"] == "ms" else ""
    return f"{found['figure']}_{found['of'].replace(' ', '_')}{unit}"
