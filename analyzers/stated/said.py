"""What an engine says of itself, in its log and on its page, as numbers."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.profiler.capture import Capture

_SOURCES = ("server_log", "metrics_page")
_MOST = 2**63  # above it a file holds no count of anything


def engines_word(capture: Capture) -> Mapping[str, object]:
    """Return what log and page say of the engine, by name; where both do, the page."""
    said: dict[str, object] = {}
    for source in _SOURCES:
        stated = capture.meta.get(source)
        said |= dict(stated) if isinstance(stated, Mapping) else {}
    return said


def positive(said: Mapping[str, object], name: str) -> float | None:
    """Return a number above zero; None for anything else."""
    value = said.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 < value < _MOST else None


def ranks_of(capture: Capture, said: Mapping[str, object]) -> int:
    """Return how many devices share each layer: as the engine says, else those of one replica."""
    replicas = positive(said, "data_parallel") or 1.0
    stated = positive(said, "tensor_parallel")
    return max(1, round(stated or capture.subject.num_devices / replicas))
