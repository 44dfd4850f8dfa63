"""Tokens a second in prefill and in decode, from the steps themselves."""

from __future__ import annotations

import math
from collections.abc import Sequence

from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.words import counted
from stallscope.profiler.evidence import Measure

# name → (unit, meaning); docs/metrics.md lists them with the others.
RATE_MEASURES: dict[str, tuple[str, str]] = {
    "prefill_tokens_per_s": (
        "tokens/s",
        "prompt tokens over the time of the steps that only prefill",
    ),
    "decode_tokens_per_s": (
        "tokens/s",
        "tokens generated over the time of the steps that only decode",
    ),
}


def token_rates(costs: Sequence[StepCost]) -> list[Measure]:
    """Return the rate of each phase whose steps all say how much they hold.

    What a step holds is known where its rows through the LM head are: readers of marks that do not
    say it leave them out.
    """
    found: list[Measure] = []
    for phase in ("prefill", "decode"):
        chosen = [c for c in costs if c.step.phase == phase]
        time_s = math.fsum(c.time_s for c in chosen)
        if not time_s or any(c.step.logit_rows is None for c in chosen):
            continue
        of_step = [
            c.step.prefill_tokens if phase == "prefill" else c.step.decode_requests for c in chosen
        ]
        name = f"{phase}_tokens_per_s"
        source = f"tokens ÷ time of {counted(len(chosen), f'{phase} step')}"
        found.append(Measure(name, sum(of_step) / time_s, "tokens/s", "derived", source))
    return found
