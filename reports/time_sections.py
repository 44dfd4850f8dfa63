"""Where time went: phases, latency, operators, windows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from stallscope.analyzers.result import (
    Diagnosis,
    OperatorRow,
    Roofline,
    Throughput,
)
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Column, Section, Table, Text

_LATENCY_NAMES = {
    "ttft_s": "time to first token (TTFT)",
    "tpot_s": "time per output token (TPOT)",
    "itl_s": "gap between tokens (ITL)",
    "e2e_s": "whole request (E2E)",
    "queue_s": "waiting in the queue",
}
_EXCESS = (
    "Whole times stand here, as measured. In a step's budget an operator counts as weights, kv or "
    "compute up to twice what its bytes or FLOPs take at the peak, and what is beyond that is "
    "unexplained: the times here add up to more than those parts."
)
_NEITHER = "Limited by neither: more of its time is unexplained than its bytes or FLOPs explain."


def phases(diagnosis: Diagnosis) -> Section:
    """Steps and time by phase."""
    is_judged = any(p.bottleneck for p in diagnosis.phases)
    columns = (
        Column("Phase"),
        Column("Steps", "number"),
        Column("Time", "number"),
        Column("Share", "number"),
        Column("Mean step", "number"),
        *((Column("Step limited by"),) if is_judged else ()),
    )
    rows = tuple(
        (
            p.phase,
            f"{p.count:,}",
            fmt.seconds(p.time_s),
            fmt.percent(p.share),
            fmt.seconds(p.mean_step_s),
            *((p.bottleneck or "",) if is_judged else ()),
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
    has_budget = any(phase.budget for phase in diagnosis.phases)
    return operators_of(rows, _ridge(diagnosis.series.roofline), has_budget=has_budget)


def operators_of(rows: Sequence[OperatorRow], ridge: str, *, has_budget: bool) -> Section:
    """FLOPs, bytes and arithmetic intensity of operators, with a sentence on the ridge point.

    Beside a step's budget it says how their times and its parts go together.
    """
    by_phase = groupby(rows, key=lambda row: row.phase)
    if not rows:
        return Section("", ())
    tables = [_operator_table(phase, tuple(group)) for phase, group in by_phase]
    return Section(
        "Operators of one step (FLOPs and bytes from the cost model, of one instance)",
        (
            *tables,
            Text(" ".join((*filter(None, (ridge,)), *(_excess(rows) if has_budget else ())))),
        ),
    )


def _excess(rows: Sequence[OperatorRow]) -> Iterator[str]:
    """Say where times are more than what explains them, and what is said to limit them then."""
    if any(r.time_s and r.explained_s is not None and r.explained_s < r.time_s for r in rows):
        yield _EXCESS
        if any(row.bound == "neither" for row in rows):
            yield _NEITHER


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
