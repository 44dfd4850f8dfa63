"""Mean latencies since a server began, of a lone page: sums over counts, and never a rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallscope.profiler.capture import EngineSample
from stallscope.profiler.wording import figure

_OF = {
    "ttft_s": "to the first token",
    "tpot_s": "per output token",
    "itl_s": "between tokens",
    "queue_s": "in the queue",
    "e2e_s": "end to end",
}
_OF_SLOTS = {
    "prefill_s_total": ("input_tokens_total", "per prompt token"),
    "decode_s_total": ("output_tokens_total", "per generated token"),
}


def means_of_life(samples: Sequence[EngineSample]) -> str | None:
    """Say the means of all that ended since the server began; None where more pages were seen."""
    if len({s.t_ns for s in samples}) != 1:
        return None
    totals = _totals(samples)
    found = [
        f"{_shown(totals[f'{name}_sum'] / count)} {text}"
        for name, text in _OF.items()
        if (count := totals.get(f"{name}_count", 0.0)) > 0 and f"{name}_sum" in totals
    ]
    found += [
        f"{_shown(totals[name] / tokens)} {text}"
        for name, (of, text) in _OF_SLOTS.items()
        if (tokens := totals.get(of, 0.0)) > 0 and name in totals
    ]
    if not found:
        return None
    return f"Means since the server began, which say nothing of this moment: {', '.join(found)}."


def _totals(samples: Sequence[EngineSample]) -> Mapping[str, float]:
    totals: dict[str, float] = {}
    for s in samples:
        totals[s.name] = totals.get(s.name, 0.0) + s.value
    return totals


def _shown(seconds: float) -> str:
    if seconds < 1:
        return f"{figure(seconds * 1e3)} ms"
    return f"{seconds:,.0f} s" if seconds >= 100 else f"{figure(seconds)} s"
