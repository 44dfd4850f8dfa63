"""What may hold a queue, and how much of the waiting time each did."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.profiler.evidence import Provenance

# The limit, as the scheduler names it, and the class of a run that it holds back.
LIMIT_CLASS = {
    "kv": "capacity",
    "seqs": "scheduling",
    "tokens": "compute",
    "prefill": "compute",
    "batch": "scheduling",
    "stalled": "scheduling",
    "imbalance": "scheduling",
    "deferred": "scheduling",
    "front": "host",
}
# What held the queue, as a clause that goes on with how much of the waiting time.
LIMIT_HELD = {
    "kv": "KV room was short for",
    "seqs": "running requests stood at the sequence cap for",
    "tokens": "prompts used up the token budget for",
    "prefill": "prompts were taken in at a steady rate under every cap for",
    "batch": "a static batch took nobody in for",
    "stalled": "the engine made no progress under no cap for",
    "imbalance": "another engine had room for",
    "deferred": "the scheduler put requests off for something other than room for",
    "front": "requests stood in front of the scheduler for",
}


@dataclass(frozen=True, slots=True)
class Admission:
    """Share of the waiting time (samples in which something waited) under each limit.

    Keys are those of LIMIT_CLASS and "unknown". `share_waiting` is the part of the span in which
    something waited; `in_flight` the mean requests in each of several engines meanwhile; `fullest`
    names the first of them. `cap` is the sequence cap, where it is known; `budget` the tokens that
    batches of prompts were cut at.
    """

    shares: dict[str, float]
    share_waiting: float
    provenance: Provenance
    source: str
    in_flight: tuple[float, ...] = ()
    fullest: str | None = None
    cap: int | None = None
    budget: int | None = None

    def ranked(self) -> tuple[tuple[str, float], ...]:
        """The limits, largest share first."""
        return tuple(sorted(self.shares.items(), key=lambda item: (-item[1], item[0])))
