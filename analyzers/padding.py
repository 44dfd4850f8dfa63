"""What steps computed for nobody: padding up to the longest prompt, and ended requests' rows."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.work import of_phases
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.shape import step_shape
from stallscope.analyzers.words import percent
from stallscope.profiler.evidence import Measure

_WORTH_A_NOTE = 0.01
_SOURCE = "tokens computed for no request ÷ tokens computed"


def padding_measures(costs: Sequence[StepCost], cost: CostModel | None) -> list[Measure]:
    """Return padding's share of the tokens computed, by phase too, and of the time."""
    by_name = {
        "padding_share": costs,
        "padding_share_prefill": of_phases(costs, "prefill"),
        "padding_share_decode": of_phases(costs, "decode"),
    }
    found = [
        Measure(name, share, "fraction", "measured", _SOURCE)
        for name, chosen in by_name.items()
        if (share := padding_share(chosen)) is not None
    ]
    time_share = _time_share(costs, cost) if found and cost is not None else None
    if time_share is not None:
        source = "floor of the work computed − floor of the work for requests, ÷ step time"
        found.append(Measure("padding_time_share", time_share, "fraction", "estimated", source))
    return found


def padding_share(costs: Sequence[StepCost]) -> float | None:
    """Return the share of tokens computed for nobody; None where a step does not say."""
    padded = [c.step.padded_tokens for c in costs]
    known = [tokens for tokens in padded if tokens is not None]
    real = sum(c.step.prefill_tokens + c.step.decode_requests for c in costs)
    if len(known) < len(padded) or not real:
        return None
    return sum(known) / (real + sum(known))


def padding_note(costs: Sequence[StepCost], cost: CostModel | None) -> tuple[str, ...]:
    """Say in one sentence what padding took, where it took something."""
    found = {m.name: m.value for m in padding_measures(costs, cost)}
    if found.get("padding_share", 0.0) < _WORTH_A_NOTE:
        return ()
    phases = [
        f"{phase} {percent(found[name])}"
        for phase in ("prefill", "decode")
        if (name := f"padding_share_{phase}") in found
    ]
    text = f"{percent(found['padding_share'])} of the tokens computed were padding"
    text += f" ({', '.join(phases)})" if phases else ""
    if "padding_time_share" in found:
        text += f", in about {percent(found['padding_time_share'])} of the step time"
    return (f"{text}: short prompts filled up to the longest, and requests that had ended.",)


def _time_share(costs: Sequence[StepCost], cost: CostModel) -> float | None:
    shapes = [step_shape(c.step, cost.spec.sliding_window) for c in costs]
    time_s = math.fsum(c.time_s for c in costs)
    if not time_s or any(shape is None for shape in shapes):
        return None
    needed = math.fsum(cost.step_time(shape).floor for shape in shapes if shape is not None)
    computed = math.fsum(c.excess_s + sum((c.floor or {}).values()) for c in costs)
    return (computed - needed) / time_s
