"""Steps of one rank that run at the same time: their times do not add up to the run's."""

from __future__ import annotations

from stallscope.analyzers.load.span import union_ns
from stallscope.analyzers.ranks import by_rank
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

_WORTH_A_NOTE = 0.01


def overlap_note(capture: Capture) -> tuple[str, ...]:
    """Say that steps overlap where phases sum to more than the time that they cover."""
    summed = covered = 0
    for rows in by_rank([s for s in capture.steps if not s.warmup]):
        summed += sum(s.end_ns - s.start_ns for s in rows)
        covered += union_ns((s.start_ns, s.end_ns) for s in rows)
    if summed - covered <= _WORTH_A_NOTE * covered:
        return ()
    share = percent(summed / covered)
    return (
        f"Steps overlap: together they are {share} of the time that they cover, so the phases sum "
        "to more than the run's length. Steps inside steps, and threads that share a Recorder, do "
        "that; give each loop a Recorder of its own to tell its time.",
    )
