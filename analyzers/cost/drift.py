"""How far the machine's own speed moved during a run, by its probes before and after."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.event_fields import number, whole_events
from stallscope.profiler.capture import Capture


def probe_changes(capture: Capture) -> Mapping[str, float]:
    """Return each probe's relative change from before to after the run."""
    seen: dict[str, dict[str, float]] = {}
    for event in whole_events(capture, "probe"):
        value = number(event, "value")
        if event.data.get("when") in ("before", "after") and value is not None:
            seen.setdefault(event.data["probe"], {})[event.data["when"]] = value
    return {
        name: pair["after"] / pair["before"] - 1.0
        for name, pair in seen.items()
        if len(pair) == 2 and pair["before"]
    }


def drift(capture: Capture) -> float:
    """Return the largest change, as the part by which the slower reading is below the faster."""
    changes = probe_changes(capture).values()
    return max((1.0 - 1.0 / (1.0 + c) if c > 0 else -c for c in changes), default=0.0)
