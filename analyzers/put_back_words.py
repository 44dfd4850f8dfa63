"""Sentences about preemption that the gauges show and no counter does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stallscope.analyzers.load.put_back import Fall
from stallscope.analyzers.words import counted
from stallscope.profiler.evidence import Measure


def inferred_text(found: Measure) -> str:
    """Say how many were preempted, as a clause."""
    least = "at least " if found.side == "lower" else "by the gauges "
    what = counted(round(found.value), "running request")
    return f"{least}{what} {'was' if round(found.value) == 1 else 'were'} preempted"


def put_back_note(falls: Sequence[Fall]) -> Iterator[str]:
    """Say from which figures preemption follows, and what the engine's counter said meanwhile."""
    for engine in sorted({f.engine for f in falls}):
        own = [f for f in falls if f.engine == engine]
        where = f" of engine {engine}" if len({f.engine for f in falls}) > 1 else ""
        why = "fewer ended" if all(f.is_least for f in own) else "no prompt was taken in"
        running = f"running fell from {own[0].running[0]:.0f} to {own[-1].running[1]:.0f}"
        waiting = f"waiting rose from {own[0].waiting[0]:.0f} to {own[-1].waiting[1]:.0f}"
        yield (
            f"Running requests{where} were preempted, by the gauges: with the KV pool full, "
            f"{running}, {waiting}, and {why}{_counter(own)}."
        )


def _counter(falls: Sequence[Fall]) -> str:
    counts = [f.counted for f in falls if f.counted is not None]
    if not counts:
        return ""
    if not sum(counts):
        return "; the engine's own counter stood still"
    return f"; the engine's own counter rose by {sum(counts):.0f} meanwhile"
