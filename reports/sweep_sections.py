"""A benchmark at several loads: a row for each, and where more load stops paying."""

from __future__ import annotations

from collections.abc import Callable

from stallscope.analyzers.result import Diagnosis, Sweep, SweepRow
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Column, Section, Table, Text

_HOW = (
    "Gain: growth of tokens/s over growth of the load, from the row above; 1 is linear. The knee "
    "is the last load before it falls below 0.5, or before TTFT grows twice as fast as the load."
)


def sweep(diagnosis: Diagnosis) -> Section:
    """The trials by load, and the knee in a sentence."""
    found = diagnosis.sweep
    if found is None:
        return Section("", ())
    return Section(
        "Sweep", (Text(found.sentence), _table(found), Text(_HOW if found.axis else "", "quiet"))
    )


def _table(found: Sweep) -> Table:
    columns = (
        Column(found.axis or "Trial", "number" if found.axis else "text"),
        Column("In + out", "number"),
        Column("In flight", "number"),
        Column("Tokens/s", "number"),
        Column("Gain", "number"),
        Column("TTFT", "number"),
        Column("TPOT", "number"),
        Column("E2E", "number"),
        Column("Limited by"),
    )
    return Table(columns, tuple(_row(row, found) for row in found.rows))


def _row(row: SweepRow, found: Sweep) -> tuple[str, ...]:
    mark = (
        " (knee)" if row.load == found.knee is not None and row.workload == found.workload else ""
    )
    lengths = (_told(row.input_tokens, fmt.number), _told(row.output_tokens, fmt.number))
    return (
        f"{_told(row.load, fmt.number)}{mark}" if found.axis else row.source,
        " + ".join(filter(None, lengths)),
        _told(row.in_flight, fmt.number),
        _told(row.output_tokens_per_s, fmt.number),
        "" if row.marginal is None else f"{row.marginal:.2f}",
        _told(row.ttft_s, fmt.seconds),
        _told(row.tpot_s, fmt.seconds),
        _told(row.e2e_s, fmt.seconds),
        row.bottleneck,
    )


def _told(value: float | None, show: Callable[[float], str]) -> str:
    return "" if value is None else show(value)
