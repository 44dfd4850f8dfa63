"""What limited the run at first, and what later, in one sentence."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.over_time.answers import answer, seen
from stallscope.analyzers.result import Window
from stallscope.profiler.wording import figure

_MOST = 4  # stretches that a sentence can hold


def changes_text(stretches: Sequence[Window]) -> str | None:
    """Tell how the limit changed; None where it did not, or where none held."""
    found = seen(stretches)
    if len(found) < 2 or all(w.limit is None for w in found):
        return None
    if len(stretches) > _MOST:
        return f"It changes {len(stretches) - 1} times: {_shares(stretches)}."
    # In the three digits that the chart beside the sentence has.
    told = [f"{answer(w)} ({figure(w.from_s)} to {figure(w.to_s)} s)" for w in stretches]
    return f"Over time: first {', then '.join(told)}."


def _shares(found: Sequence[Window]) -> str:
    seconds: dict[str, float] = {}
    for window in found:
        length = window.to_s - window.from_s
        seconds[answer(window)] = seconds.get(answer(window), 0.0) + length
    total = sum(seconds.values())
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    return ", ".join(f"{what} {100 * s / total:.0f} % of the time" for what, s in ranked)
