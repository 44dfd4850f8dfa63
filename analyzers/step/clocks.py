"""Whether slow clocks, and not the work, explain the step."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from stallscope.analyzers.quantities import samples_of
from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.step.limit import part_share
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture


@dataclass(frozen=True, slots=True)
class ClockRatio:
    """Observed over nominal clock, 1.0 where not sampled."""

    sm: float
    memory: float


def clock_ratios(capture: Capture) -> ClockRatio | None:
    """Return mean observed ÷ nominal clocks; None where no clock was sampled with its nominal."""
    found: dict[str, float] = {}
    for name in ("sm", "memory"):
        # Some drivers answer 0 for a clock that they do not know.
        seen = [s.value for s in samples_of(capture, f"{name}_clock_hz") if s.value > 0]
        nominal = [s.value for s in samples_of(capture, f"{name}_clock_max_hz") if s.value > 0]
        if seen and nominal:
            found[name] = statistics.fmean(seen) / max(nominal)
    if not found or (capture.subject.device is not None and capture.subject.device.is_cpu):
        return None
    return ClockRatio(found.get("sm", 1.0), found.get("memory", 1.0))


def slow_clocks_explain(budget: PhaseBudget, ratio: ClockRatio, t: Thresholds) -> bool:
    """Tell whether the floor at observed clocks explains the step and at nominal ones does not."""
    memory = part_share(budget, "weights", "kv")
    compute = part_share(budget, "compute")
    rest = part_share(budget, "host", "communication", "transfer")
    nominal = memory + compute + rest
    observed = memory / ratio.memory + compute / ratio.sm + rest
    return nominal < t.explained_share <= observed
