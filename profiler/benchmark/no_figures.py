"""What stands where a result should have a figure, and is none: NaN, infinite, negative, words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from stallscope.profiler.benchmark.figures import Row, number

# A latency, a rate, a time or a count by its key, in the spellings of the tools that are read.
_FIGURE = re.compile(
    r"(?:mean|median|avg|average|p\d{1,3}|min|max)(?:_\w{1,30})?(?:_ms|_s)?|\w{0,40}_throughput"
    r"|duration|completed|total_(?:input|output)_tokens",
    re.IGNORECASE,
)
_MOST = 6  # named in the sentence
_DEPTH = 6


def no_figures(row: Row) -> str | None:
    """Say what was left out of a row of results as no figure; None where all are figures."""
    found = list(dict.fromkeys(_left_out(row, (), _DEPTH)))
    if not found:
        return None
    more = f" and {len(found) - _MOST} more" if len(found) > _MOST else ""
    verb = "is no figure and was" if len(found) == 1 else "are no figures and were"
    return f"{', '.join(found[:_MOST])}{more} {verb} left out."


def _left_out(row: Row, path: tuple[str, ...], depth: int) -> Iterator[str]:
    for key, value in row.items():
        if isinstance(value, Mapping):
            if not depth or "delay" in str(key):  # a request may be sent early: below zero is one
                continue
            yield from _left_out(value, (*path, str(key)), depth - 1)
        elif _FIGURE.fullmatch(str(key)) and _is_other(row, key, value):
            yield f"{'.'.join((*path, str(key)))} ({_shown(value)})"


def _is_other(row: Row, key: str, value: object) -> bool:
    """Tell whether a value is neither a figure nor left open."""
    is_open = value is None or isinstance(value, bool | list) or value == ""
    return not is_open and number(row, key) is None


def _shown(value: object) -> str:
    text = " ".join(str(value).split())
    return text if len(text) <= 20 else f"{text[:20]}…"
