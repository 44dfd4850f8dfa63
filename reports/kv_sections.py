"""The KV cache: its size by length, and the four stages of its life."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.result import Diagnosis, KvRow, LifeStage
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Column, Section, Table

_GROWTH = (
    Column("Tokens", "number"),
    Column("Size", "number"),
    Column("Bytes", "number"),
    Column("Evidence"),
)
_LIFE = (
    Column("Stage"),
    Column("Events", "number"),
    Column("Tokens", "number"),
    Column("Size", "number"),
)


def growth(diagnosis: Diagnosis) -> Section:
    """Bytes of one sequence's KV cache by its length."""
    return growth_of(diagnosis.kv_table)


def growth_of(table: Sequence[KvRow]) -> Section:
    """Bytes of one sequence's KV cache by its length, a table for each source."""
    sources = dict.fromkeys(r.source for r in table)
    tables = tuple(
        Table(_GROWTH, tuple(_size(r) for r in table if r.source == source), caption=source)
        for source in sources
    )
    return Section("KV cache growth, one sequence", tables)


def _size(row: KvRow) -> tuple[str, ...]:
    return (f"{row.seq_len:,}", fmt.bytes_size(row.bytes), f"{row.bytes:,}", row.provenance)


def life(diagnosis: Diagnosis) -> Section:
    """What the run recorded of each stage."""
    rows = tuple((s.stage, f"{s.events:,}", _tokens(s), _bytes(s)) for s in diagnosis.kv_life)
    return Section("KV cache life, whole run", (Table(_LIFE, rows),))


def _tokens(stage: LifeStage) -> str:
    return fmt.UNKNOWN if stage.tokens is None else f"{stage.tokens:,}"


def _bytes(stage: LifeStage) -> str:
    return fmt.UNKNOWN if stage.bytes is None else fmt.bytes_size(stage.bytes)
