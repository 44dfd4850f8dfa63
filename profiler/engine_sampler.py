"""Sample the engine's own state: requests waiting and running, KV bytes used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from stallscope.profiler.capture import EngineSample
from stallscope.profiler.evidence import NotObservable


class EngineState(NamedTuple):
    """What the engine last said about itself; None is not known."""

    waiting: int | None = None
    running: int | None = None
    kv_used_bytes: int | None = None
    kv_total_bytes: int | None = None


class EngineSampler:
    """Reads a state that the engine's thread replaces as a whole, so that no lock is needed."""

    name = "engine"

    def __init__(self, read: Callable[[], EngineState], *, engine: str = "engine") -> None:
        self._read = read
        self._engine = engine

    def probe(self) -> tuple[NotObservable, ...]:
        """Return nothing: a gauge that the engine does not set is simply not sampled."""
        return ()

    def sample(self, t_ns: int) -> Iterator[EngineSample]:
        """Return what is known now."""
        state = self._read()
        for name, value in zip(EngineState._fields, state, strict=True):
            if value is not None:
                yield EngineSample(t_ns, self._engine, name, float(value))
