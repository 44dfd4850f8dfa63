"""Which row counts to time the linears at: those that the run spent its time in, and a grid."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
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


class StepTimes:
    """The time that a run spent in steps of each kind: rows through the linears and the LM head."""

    def __init__(self) -> None:
        self.seconds: dict[tuple[int, int], float] = defaultdict(float)
        self.counts: dict[tuple[int, int], int] = defaultdict(int)

    def add(self, step: Step) -> None:
        """Count a step."""
        kind = (step.prefill_tokens + step.decode_requests, step.logit_rows or 0)
        self.seconds[kind] += (step.end_ns - step.start_ns) / 1e9
        self.counts[kind] += 1


def observed_rows(times: StepTimes) -> tuple[ProbeRows, ...]:
    """Return the few kinds of step that cover the run's time, the heaviest first."""
    total = sum(times.seconds.values())
    chosen: list[ProbeRows] = []
    covered = 0.0
    for kind, seconds in sorted(times.seconds.items(), key=lambda item: -item[1]):
        if len(chosen) == MOST_OBSERVED or covered >= COVERED_SHARE * total:
            break
        chosen.append(ProbeRows(*kind, expected_s=seconds / times.counts[kind]))
        covered += seconds
    return tuple(chosen)


def grid_rows(observed: Iterable[ProbeRows], concurrency: int) -> tuple[ProbeRows, ...]:
    """Return powers of two up to past the most rows seen and the concurrency (for what-if).

    The LM head sees one row per request at most, so its grid ends earlier.
    """
    observed = tuple(observed)
    most_rows = max([concurrency, *(kind.rows for kind in observed)])
    most_logits = max([concurrency, *(kind.logit_rows for kind in observed)])
    return tuple(
        ProbeRows(rows, rows if rows < 2 * most_logits else 0) for rows in _powers_past(most_rows)
    )


def _powers_past(limit: int) -> list[int]:
    powers = [1]
    while powers[-1] < limit:
        powers.append(2 * powers[-1])
    return powers
