"""What Ollama says of a request: the last object of /api/generate and /api/chat, or --verbose.

Times are in nanoseconds (docs/api.md), as printed a duration of Go. The time of the output counts
from its first token (runner.go), so that n tokens have n - 1 of it; before lies all that a client
waits for, the loading of the model among it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from stallscope.profiler.benchmark.figures import Row, count, positive
from stallscope.profiler.benchmark.printed import Block, plain
from stallscope.profiler.trial import Spread, Trial
from stallscope.profiler.wording import figure

_NS = 1e-9
_LOADED = 0.1  # of the time before the first token: less is no cold start
_LABELS = {
    "total duration": "total_duration",
    "load duration": "load_duration",
    "prompt eval count": "prompt_eval_count",
    "prompt eval duration": "prompt_eval_duration",
    "prompt eval rate": "",
    "eval count": "eval_count",
    "eval duration": "eval_duration",
    "eval rate": "",
}
_PRINTED = re.compile(r"(?P<label>[a-z ]{9,20}):\s{1,12}(?P<value>\S{1,40})(?: \S{1,20})?")
HEADER = re.compile(r"^[ \t>]*total duration: {1,12}\d[\dhmnsuµ.]{1,30}[ \t]*\r?$", re.MULTILINE)
_PART = re.compile(r"(\d{1,12}(?:\.\d{1,12})?)(h|ms|m|s|us|µs|μs|ns)")
_UNITS = {"h": 3600e9, "m": 60e9, "s": 1e9, "ms": 1e6, "us": 1e3, "µs": 1e3, "μs": 1e3, "ns": 1.0}


def is_response(row: Row) -> bool:
    """Tell whether a row is a whole request's: parts of a stream have no figures."""
    return "eval_duration" in row and "eval_count" in row and "total_duration" in row


def trials(row: Row, source: str) -> Iterator[Trial]:
    """Read one request."""
    whole, output = positive(row, "total_duration"), positive(row, "eval_duration")
    written, read = count(row, "eval_count"), count(row, "prompt_eval_count")
    latency: dict[str, Spread] = {}
    if whole is not None and output is not None and written and output < whole:
        latency["ttft_s"] = Spread(mean=(whole - output) * _NS, n=1)
        if written > 1:
            latency["tpot_s"] = Spread(mean=output * _NS / (written - 1), n=1)
    if whole is not None:
        latency["e2e_s"] = Spread(mean=whole * _NS, n=1)
    yield Trial(
        source=source,
        completed=1,
        duration_s=None if whole is None else whole * _NS,
        input_tokens=read or None,
        output_tokens=written or None,
        input_tokens_per_s=read / (whole * _NS) if read and whole else None,
        output_tokens_per_s=written / (whole * _NS) if written and whole else None,
        latency=latency,
    )


def notes(row: Row) -> Iterator[str]:
    """Say what of the first token's wait went into loading the model."""
    whole, output = positive(row, "total_duration"), positive(row, "eval_duration")
    load = positive(row, "load_duration")
    if whole is None or output is None or load is None or load < _LOADED * (whole - output):
        return
    yield (
        f"Of {figure((whole - output) * _NS)} s before the first token Ollama took "
        f"{figure(load * _NS)} s to load the model; ask again while it is loaded."
    )


def has_printed(text: str) -> bool:
    """Tell whether text holds what --verbose prints."""
    return HEADER.search(text) is not None


def blocks_of(lines: Iterable[str]) -> Iterator[Block]:
    """Yield a block for each request; it ends where other text begins, or another request."""
    row: dict[str, object] = {}
    places: list[int] = []
    for place, line in enumerate(lines):
        found = _PRINTED.fullmatch(plain(line))
        name = None if found is None else _LABELS.get(found["label"])
        if row and (name is None or name == "total_duration"):
            yield Block(row, tuple(places))
            row, places = {}, []
        if found is None or name is None or not (row or name == "total_duration"):
            continue
        places.append(place)
        if name:
            row[name] = found["value"] if name.endswith("_count") else _ns(found["value"])
    if row:
        yield Block(row, tuple(places))


def _ns(value: str) -> float | None:
    """Return Go's "1m2.5s" in nanoseconds; None for what is none."""
    parts = _PART.findall(value)
    if not parts or "".join(number + unit for number, unit in parts) != value:
        return None
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
