"""Which rank's steps stand for an engine: ranks that share a model all run the same steps."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.profiler.capture import Step

_ALIKE = 0.95  # a cut leaves the ranks of one engine a few steps apart


def _work(step: Step) -> tuple[str, int, int]:
    return step.phase, step.prefill_tokens, step.decode_requests


def by_rank(steps: Sequence[Step]) -> tuple[tuple[Step, ...], ...]:
    """Return each rank's steps, in order of start."""
    ranks: dict[int, list[Step]] = {}
    for step in sorted(steps, key=lambda s: (s.rank, s.start_ns)):
        ranks.setdefault(step.rank, []).append(step)
    return tuple(tuple(rows) for rows in ranks.values())


def _share_steps(ranks: Sequence[Sequence[Step]]) -> bool:
    shortest = min(len(rows) for rows in ranks)
    if shortest < _ALIKE * max(len(rows) for rows in ranks):
        return False
    first = [_work(s) for s in ranks[0][:shortest]]
    return all([_work(s) for s in rows[:shortest]] == first for rows in ranks[1:])


def engine_steps(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return the engine's steps, each once: of ranks that run the same, the slowest's.

    Ranks with work of their own (data parallel) keep all their steps.
    """
    ranks = by_rank(steps)
    if len(ranks) > 1 and _share_steps(ranks):
        return max(ranks, key=lambda rows: (sum(s.end_ns - s.start_ns for s in rows), len(rows)))
    return tuple(step for rows in ranks for step in rows)
