"""Several servers or engines beside each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Replica:
    """One of several servers or engines; means over time, derived from gauges and counters.

    `kv_used` is the highest share of its KV pool seen; `remark` says what sets it apart; `limit` is
    what held its queue, as in Verdict.
    """

    replica: str
    bottleneck: str  # JSON "class"
    confidence: float
    load: str
    sentence: str
    in_flight: float | None
    waiting: float | None
    running: float | None
    kv_used: float | None
    output_tokens_per_s: float | None
    remark: str | None = None
    limit: str | None = None


@dataclass(frozen=True, slots=True)
class Fleet:
    """What replicas have in common, and what sets some apart."""

    sentence: str
    common_limit: str | None
    stragglers: tuple[str, ...]
    imbalance: str | None
