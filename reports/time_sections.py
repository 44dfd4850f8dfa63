"""Where time went: phases, latency, operators, windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from stallscope.analyzers.result import (
    Diagnosis,
    OperatorRow,
    Roofline,
    Throughput,
    Window,
)
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Column, Section, Strip, Table, Text
from stallscope.reports.verdict_sections import tells_load

_LATENCY_NAMES = {
    "ttft_s": "time to first token (TTFT)",
    "tpot_s": "time per output token (TPOT)",
    "itl_s": "gap between tokens (ITL)",
    "e2e_s": "whole request (E2E)",
    "queue_s": "waiting in the queue",
}
_LIMITS = {
    "kv": "KV full",
    "seqs": "sequence cap",
    "tokens": "token budget",
    "prefill": "prompts",
    "batch": "static batch",
    "stalled": "stalled",
    "imbalance": "imbalance",
    "deferred": "deferred",
    "front": "in front",
}

_EXCESS = (
    "Limited by neither: it takes more than twice what its bytes and FLOPs explain. Its whole time "
    "stands here; in a step's budget what they do not explain is unexplained, so the times here "
    "add up to more than weights, kv and compute there."
)


def phases(diagnosis: Diagnosis) -> Section:
    """Steps and time by phase."""
    columns = (
        Column("Phase"),
        Column("Steps", "number"),
        Column("Time", "number"),
        Column("Share", "number"),
        Column("Mean step", "number"),
    )
    rows = tuple(
        (
            p.phase,
            f"{p.count:,}",
            fmt.seconds(p.time_s),
            fmt.percent(p.share),
            fmt.seconds(p.mean_step_s),
        )
        for p in diagnosis.phases
    )
    return Section("Phases (warm-up excluded)", (Table(columns, rows),))


def latency(diagnosis: Diagnosis) -> Section:
    """Distributions over requests, and rates over the run."""
    columns = (Column(""), *(Column(name, "number") for name in ("mean", "p50", "p90", "p99", "n")))
    rows = tuple(
        (
            _LATENCY_NAMES.get(name, name),
            *(_told(value) for value in (d.mean, d.p50, d.p90, d.p99)),
            "" if d.n is None else f"{d.n:,}",
        )
        for name, d in diagnosis.latency.items()
    )
    rates = " · ".join(_rates(diagnosis.throughput))
    return Section(
        "Latency and throughput",
        (Table(columns, rows), Text(f"Throughput: {rates}" if rates else "")),
    )


def _told(value: float | None) -> str:
    """Leave a percentile empty that a foreign file does not tell."""
    return "" if value is None else fmt.seconds(value)


def operators(diagnosis: Diagnosis) -> Section:
    """FLOPs, bytes and arithmetic intensity of each operator, a table for each phase."""
    rows = diagnosis.operators
    has_excess = any(phase.budget for phase in diagnosis.phases) and any(
        row.bound == "neither" and row.time_s is not None for row in rows
    )
    ridge = _ridge(diagnosis.series.roofline)
    return operators_of(rows, " ".join(filter(None, (ridge, _EXCESS if has_excess else ""))))


def operators_of(rows: Sequence[OperatorRow], ridge: str) -> Section:
    """FLOPs, bytes and arithmetic intensity of operators, with a sentence on the ridge point."""
    by_phase = groupby(rows, key=lambda row: row.phase)
    tables = [_operator_table(phase, tuple(group)) for phase, group in by_phase]
    return Section(
        "Operators of one step (FLOPs and bytes from the cost model, of one instance)",
        (*tables, Text(ridge)),
    )


def windows(diagnosis: Diagnosis) -> Section:
    """A strip over time for every verdict that some window got."""
    columns = (Column(""), Column(""))
    found = diagnosis.windows
    if len(found) < 2:
        return Section("", ())
    start, end = min(w.from_s for w in found), max(w.to_s for w in found)
    has_load = tells_load(diagnosis)
    named = [(_kind(w, has_load=has_load), w) for w in found]
    rows = tuple(
        (kind, _strip([w for own, w in named if own == kind], start, end))
        for kind in dict.fromkeys(own for own, _ in named)
    )
    span = f"{fmt.seconds(start)} to {fmt.seconds(end)}, {len(found)} windows"
    return Section("Over time", (Table(columns, rows, caption=span),))


def _rates(throughput: Throughput) -> Iterator[str]:
    for value, unit in (
        (throughput.input_tokens_per_s, "input tokens/s"),
        (throughput.output_tokens_per_s, "output tokens/s"),
        (throughput.requests_per_s, "requests/s"),
    ):
        if value is not None:
            yield fmt.quantity(value, unit)


def _operator_table(phase: str, rows: Sequence[OperatorRow]) -> Table:
    columns = (
        Column("Operator"),
        Column("×", "number"),
        Column("FLOPs", "number"),
        Column("Bytes", "number"),
        Column("FLOP/B", "number"),
        Column("Limited by"),
        Column("Time, all", "number"),
    )
    return Table(columns, tuple(_operator(row) for row in rows), caption=phase)


def _operator(row: OperatorRow) -> tuple[str, ...]:
    return (
        row.name,
        f"{row.instances:,}",
        fmt.si(row.flops, "FLOP"),
        fmt.si(row.bytes, "B"),
        fmt.intensity(row.intensity),
        row.bound or "",
        "" if row.time_s is None else fmt.seconds(row.time_s),
    )


def _ridge(roofline: Roofline | None) -> str:
    if roofline is None:
        return ""
    peaks = (
        f"{fmt.si(roofline.peak_flops, 'FLOP/s')} and {fmt.si(roofline.peak_bytes_per_s, 'B/s')}"
    )
    return (
        f"Ridge point: {fmt.intensity(roofline.ridge)} FLOP/B ({roofline.kind} peaks {peaks}). "
        "Below it memory limits an operator, above it compute."
    )


def _kind(window: Window, *, has_load: bool) -> str:
    """Name what a window got; its load only where something told it."""
    limit = f" ({_LIMITS[window.limit]})" if window.limit is not None else ""
    load = f", {window.load}" if has_load else ""
    return f"{window.bottleneck}{limit}{load}"


def _strip(windows: Sequence[Window], start: float, end: float) -> Strip:
    # Where a window lies on the line is drawing, not evidence: hence the division here.
    length = (end - start) or 1.0
    return Strip(tuple(((w.from_s - start) / length, (w.to_s - start) / length) for w in windows))
