"""Whether slow clocks, and not the work, explain the step."""

from __future__ import annotations

import statistics
from dataclasses import dataclass

from stallscope.analyzers.quantities import used_samples
from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.step.limit import Decision, part_share
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import both, percent
from stallscope.profiler.capture import Capture


@dataclass(frozen=True, slots=True)
class ClockRatio:
    """Observed over nominal clock, 1.0 where not sampled; `sampled` names those that were."""

    sm: float
    memory: float
    sampled: tuple[str, ...] = ("sm", "memory")

    @property
    def text(self) -> str:
        """The clocks that were sampled, in words."""
        words = {"sm": f"{percent(self.sm)} (SM)", "memory": f"{percent(self.memory)} (memory)"}
        return both([words[name] for name in self.sampled])


def clock_shares(capture: Capture) -> dict[str, float]:
    """Return mean observed ÷ nominal clock of "sm" and "memory", where both were sampled."""
    found: dict[str, float] = {}
    if capture.subject.device is not None and capture.subject.device.is_cpu:
        return found
    for name in ("sm", "memory"):
        # Some drivers answer 0 for a clock that they do not know.
        seen = [s.value for s in used_samples(capture, f"{name}_clock_hz") if s.value > 0]
        nominal = [s.value for s in used_samples(capture, f"{name}_clock_max_hz") if s.value > 0]
        if seen and nominal:
            found[name] = statistics.fmean(seen) / max(nominal)
    return found


def clock_ratios(capture: Capture) -> ClockRatio | None:
    """Return both clocks; None where no clock was sampled with its nominal."""
    found = clock_shares(capture)
    if not found:
        return None
    return ClockRatio(found.get("sm", 1.0), found.get("memory", 1.0), tuple(found))


def is_slow(ratio: float, t: Thresholds) -> bool:
    """Tell whether a clock's share of its nominal is below what boost comes and goes by."""
    return ratio <= 1.0 - t.clock_deficit + 1e-9


def explained(budget: PhaseBudget, ratio: ClockRatio, t: Thresholds) -> tuple[float, float]:
    """Return the share of a step that floor and host explain at nominal and at observed clocks.

    A clock within `clock_deficit` of its nominal is a boost that came and went, not a slow one.
    """
    memory = part_share(budget, "weights", "kv")
    compute = part_share(budget, "compute")
    rest = part_share(budget, "host", "communication", "transfer")
    by_memory = ratio.memory if is_slow(ratio.memory, t) else 1.0
    by_sm = ratio.sm if is_slow(ratio.sm, t) else 1.0
    return memory + compute + rest, memory / by_memory + compute / by_sm + rest


def slow_clocks_explain(budget: PhaseBudget, ratio: ClockRatio, t: Thresholds) -> bool:
    """Tell whether the floor at observed clocks explains the step and at nominal ones does not.

    The rise must be as real as the deficit: a step that nominal clocks nearly explain is not slow.
    """
    nominal, observed = explained(budget, ratio, t)
    rises = observed - nominal >= t.clock_deficit
    return rises and nominal < t.explained_share <= observed


def slow_clocks(
    budget: PhaseBudget, ratio: ClockRatio, decision: Decision, t: Thresholds
) -> Decision | None:
    """Return the device as what limits, with what limits at nominal clocks next; else None."""
    if not slow_clocks_explain(budget, ratio, t):
        return None
    reason = f"clocks ran at {ratio.text} of nominal"
    # An undetermined step names its largest class first.
    after = decision.between[0] if decision.between else decision.bottleneck
    _, observed = explained(budget, ratio, t)
    return Decision("device", observed, decision.share, after, 0.0, 0.7, reason)
