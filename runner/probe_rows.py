"""Which row counts to time the linears at: those that the run spent its time in, and a grid."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from stallscope.profiler.capture import Step

COVERED_SHARE = 0.95
MOST_OBSERVED = 8


@dataclass(frozen=True, slots=True)
class ProbeRows:
    """Rows through a layer's linears, and through the LM head (0: leave it out)."""

    rows: int
    logit_rows: int
    expected_s: float | None = None  # mean time of the run's steps of this kind


@dataclass(frozen=True, slots=True)
class StepKind:
    """What a step's time depends on most."""

    phase: str
    rows: int
    logit_rows: int


class StepTimes:
    """The time that a run spent in steps of each kind."""

    def __init__(self) -> None:
        self.seconds: dict[StepKind, float] = defaultdict(float)
        self.counts: dict[StepKind, int] = defaultdict(int)

    def add(self, step: Step) -> None:
        """Count a step."""
        rows = step.prefill_tokens + step.decode_requests + (step.padded_tokens or 0)
        kind = StepKind(step.phase, rows, step.logit_rows or 0)
        self.seconds[kind] += (step.end_ns - step.start_ns) / 1e9
        self.counts[kind] += 1


def observed_rows(times: StepTimes) -> tuple[ProbeRows, ...]:
    """Return the few kinds of step that cover the run's time, the heaviest first.

    Each phase is among them at least once, however little time it took.
    """
    total = sum(times.seconds.values())
    heaviest_first = sorted(times.seconds, key=lambda kind: -times.seconds[kind])
    chosen: list[StepKind] = []
    covered = 0.0
    for kind in heaviest_first:
        needed = len(chosen) < MOST_OBSERVED and covered < COVERED_SHARE * total
        if needed or kind.phase not in {other.phase for other in chosen}:
            chosen.append(kind)
            covered += times.seconds[kind]
    return tuple(
        ProbeRows(kind.rows, kind.logit_rows, times.seconds[kind] / times.counts[kind])
        for kind in chosen
    )


def grid_rows(times: StepTimes, concurrency: int) -> tuple[ProbeRows, ...]:
    """Return powers of two up to past the most rows seen and the concurrency (for what-if).

    The LM head sees one row per request at most, so its grid ends earlier.
    """
    most_rows = max([concurrency, *(kind.rows for kind in times.seconds)])
    most_logits = max([concurrency, *(kind.logit_rows for kind in times.seconds)])
    return tuple(
        ProbeRows(rows, rows if rows < 2 * most_logits else 0) for rows in _powers_past(most_rows)
    )


def _powers_past(limit: int) -> list[int]:
    powers = [1]
    while powers[-1] < limit:
        powers.append(2 * powers[-1])
    return powers
