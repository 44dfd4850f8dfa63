"""Exports of genai-perf and AIPerf: JSON and CSV, each figure with its unit."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator, Mapping

from stallscope.profiler.benchmark.figures import (
    Row,
    count,
    inner,
    load,
    number,
    positive,
    text,
    told,
)
from stallscope.profiler.trial import Spread, Trial

# One request's mean gap is what they call inter-token latency: our TPOT. Gaps between chunks, all
# of them, are inter-chunk latency.
_LATENCIES: Mapping[str, tuple[str, ...]] = {
    "ttft_s": ("time_to_first_token", "ttft"),
    "tpot_s": ("inter_token_latency",),
    "itl_s": ("inter_chunk_latency",),
    "e2e_s": ("request_latency",),
}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_FIGURES = {"mean": "avg", "p50": "p50", "p90": "p90", "p99": "p99", "least": "min", "most": "max"}
_MARKS = ("request_throughput", "request_latency", "output_token_throughput")
_HEADING = re.compile(r"(?P<name>[^(]+?)\s*(?:\((?P<unit>[^)]*)\))?\s*")
HEADER = re.compile(r"\s*Metric\s*,\s*avg\s*,\s*min\s*,\s*max\s*,", re.I)


def is_export(row: Row) -> bool:
    """Tell whether a row is such an export: metrics that are objects with a unit and a mean."""
    metrics = _metrics(row)
    return any("avg" in inner(metrics, name) and "unit" in inner(metrics, name) for name in _MARKS)


def trials(row: Row, source: str) -> Iterator[Trial]:
    """Read an export."""
    metrics = _metrics(row)
    completed = _whole(metrics, "request_count")
    started = _value(metrics, "min_request_timestamp")
    yield Trial(
        source=source,
        **load(_offered(row, "concurrency"), _rate(row)),
        completed=completed,
        failed=_whole(metrics, "error_request_count"),
        duration_s=_duration(metrics),
        input_tokens=_value(metrics, "input_sequence_length"),
        output_tokens=_value(metrics, "output_sequence_length"),
        input_tokens_per_s=_value(metrics, "input_token_throughput"),
        output_tokens_per_s=_value(metrics, "output_token_throughput"),
        requests_per_s=_value(metrics, "request_throughput"),
        started_unix_ns=int(started) if started and started < 2**63 else None,
        latency={} if completed == 0 else _latency(metrics, completed),
    )


def model(row: Row) -> str | None:
    """Name the model."""
    settings = inner(row, "input_config")
    for holder in (inner(settings, "endpoint"), settings):
        names = holder.get("model_names") or holder.get("model")
        if isinstance(names, list) and names and isinstance(names[0], str):
            return names[0]
        if isinstance(names, str):
            return names
    return None


def row_of_csv(content: str) -> Row:
    """Return the metrics of a CSV export as its JSON twin has them."""
    metrics: dict[str, dict[str, object]] = {}
    columns: list[str] = []
    for cells in csv.reader(content.splitlines()):
        if len(cells) > 1 and cells[0].strip().lower() == "metric":
            columns = [c.strip().lower() for c in cells[1:]]
        elif len(cells) > 1 and columns:
            name, unit = _heading(cells[0])
            figures = dict(zip(columns, cells[1:], strict=False))
            if columns == ["value"]:
                figures = {"avg": cells[1]}
            metrics.setdefault(name, {"unit": unit, **figures})
    return metrics


def _heading(cell: str) -> tuple[str, str]:
    found = _HEADING.fullmatch(cell)
    if found is None:
        return cell, ""
    return re.sub(r"[\s-]+", "_", found["name"].strip().lower()), (found["unit"] or "").strip()


def _metrics(row: Row) -> Row:
    return inner(row, "records") or row


def _value(metrics: Row, name: str) -> float | None:
    """Return a mean; times in seconds, tokens and rates as they are."""
    return positive(inner(metrics, name), "avg")


def _whole(metrics: Row, name: str) -> int | None:
    return count(inner(metrics, name), "avg")


def _duration(metrics: Row) -> float | None:
    stated = inner(metrics, "benchmark_duration")
    value = positive(stated, "avg")
    if value is not None:
        return value * _SECONDS.get(text(stated, "unit") or "", 1.0)
    requests, rate = _value(metrics, "request_count"), _value(metrics, "request_throughput")
    return requests / rate if requests and rate else None


def _latency(metrics: Row, completed: int | None) -> dict[str, Spread]:
    found = {}
    for metric, names in _LATENCIES.items():
        row = next((inner(metrics, n) for n in names if inner(metrics, n)), {})
        scale = _SECONDS.get(text(row, "unit") or "")
        if scale is None:
            continue  # without a unit a time says nothing
        n = completed if metric in ("ttft_s", "e2e_s") else None
        figures = {f: number(row, name) for f, name in _FIGURES.items()}
        seconds = {f: None if v is None else v * scale for f, v in figures.items()}
        found[metric] = Spread(**seconds, n=count(row, "count") or n)
    return told(found)


def _places(row: Row) -> tuple[Row, ...]:
    settings = inner(row, "input_config")
    return (
        inner(settings, "loadgen"),
        inner(settings, "perf_analyzer", "stimulus"),
        settings,
        inner(row, "stimulus"),
    )


def _offered(row: Row, name: str) -> int | None:
    return next((v for place in _places(row) if (v := count(place, name))), None)


def _rate(row: Row) -> float | None:
    return next((v for place in _places(row) if (v := positive(place, "request_rate"))), None)
