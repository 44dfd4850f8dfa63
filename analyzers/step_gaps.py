"""Time between steps while requests were under way: counted as theirs, and said."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.words import percent
from stallscope.profiler.wording import figure

MUCH = 0.20  # of a phase's time


def gap_notes(costs: Sequence[StepCost]) -> tuple[str, ...]:
    """Say of each phase how much of its time passes between its steps, where that is much."""
    notes = []
    for phase in ("prefill", "decode", "mixed"):
        chosen = [c for c in costs if c.step.phase == phase]
        time_s = math.fsum(c.time_s for c in chosen)
        own_s = math.fsum((c.step.end_ns - c.step.start_ns) * 1e-9 for c in chosen)
        between_s = time_s - own_s
        if time_s and between_s >= MUCH * time_s:
            notes.append(
                f"Of {phase}'s {figure(time_s)} s, {percent(between_s / time_s)} passes between "
                f"steps: a step itself takes {figure(own_s / len(chosen) * 1e3)} ms on average. "
                "That time "
                "counts as the host's, since requests were under way; if nothing was to be done "
                "then, it is no loss."
            )
    return tuple(notes)
