"""Whether steps say how many requests they hold: a trace's marks often do not, a record does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from stallscope.profiler.capture import Step


def with_counted_steps(meta: Mapping[str, Any], own: Sequence[Step]) -> dict[str, Any]:
    """Return a joined capture's meta: where steps are `own`, a trace's marks do not matter."""
    trace = meta.get("trace")
    if not own or not isinstance(trace, Mapping):
        return dict(meta)
    return {**meta, "trace": {**trace, "counted": True}}
