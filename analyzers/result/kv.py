"""The KV cache: its size by length, and the stages of its life."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.profiler.evidence import Provenance


@dataclass(frozen=True, slots=True)
class KvRow:
    """KV cache size at one sequence length; `source` says formula or the engine's allocation."""

    seq_len: int
    bytes: int
    provenance: Provenance
    source: str


@dataclass(frozen=True, slots=True)
class LifeStage:
    """One of the four stages of the KV cache's life (document, section 3.2), as recorded."""

    stage: str  # "initialised", "appended", "read", "freed"
    events: int
    tokens: int | None
    bytes: int | None
