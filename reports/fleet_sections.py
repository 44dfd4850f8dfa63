"""Several replicas in one table, the most held first."""

from __future__ import annotations

from stallscope.analyzers.result import Diagnosis, Replica
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Cell, Column, Item, Items, Section, Table, Text

_COLUMNS = (
    Column("Replica", "status"),
    Column("Verdict"),
    Column("Load"),
    Column("Run", "number"),
    Column("Wait", "number"),
    Column("KV", "number"),
    Column("Tokens/s", "number"),
)
_MOST_TOLD = 10
_OPEN = ("none", "undetermined")  # their sentences tell of no limit
_HOW = (
    "Run and wait: requests running and waiting, means over time of the scraped gauges; KV is the "
    "highest use seen; tokens/s is the rise of the counter of generated tokens (derived)."
)


def replicas(diagnosis: Diagnosis) -> Section:
    """The fleet's sentence, a row for each replica, and what holds the first of them, in words."""
    fleet, said = diagnosis.fleet, diagnosis.verdict.sentence
    rows = tuple(_row(replica) for replica in diagnosis.replicas)
    held = [r for r in diagnosis.replicas if r.bottleneck not in _OPEN or r.remark]
    told = Items(tuple(map(_told, held[:_MOST_TOLD])))
    return Section(
        "Replicas",
        (
            Text("" if fleet is None or fleet.sentence in said else fleet.sentence),
            Table(_COLUMNS, rows),
            told,
            Text(_HOW if rows else "", "quiet"),
        ),
    )


def _told(replica: Replica) -> Item:
    remark = (replica.remark,) if replica.remark else ()
    return Item(f"{replica.replica}: {replica.sentence}", remark)


def _row(replica: Replica) -> tuple[Cell, ...]:
    return (
        replica.replica,
        replica.bottleneck,
        replica.load,
        _number(replica.running),
        _number(replica.waiting),
        "not told" if replica.kv_used is None else fmt.percent(replica.kv_used),
        _number(replica.output_tokens_per_s),
    )


def _number(value: float | None) -> str:
    return "not told" if value is None else fmt.number(value)
