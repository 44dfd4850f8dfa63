"""Sample the engine's own state: requests waiting and running, KV bytes used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from stallscope.profiler.capture import EngineSample
from stallscope.profiler.counts import BITS, count
from stallscope.profiler.evidence import NotObservable


class EngineState(NamedTuple):
    """What the engine last said about itself; None is not known."""

    waiting: int | None = None
    running: int | None = None
    kv_used_bytes: int | None = None
    kv_total_bytes: int | None = None


def plain_state(state: tuple[int | None, ...]) -> EngineState:
    """Return the state in plain ints; TypeError or ValueError name the field that is no count."""
    for value in state:
        if value is not None and (type(value) is not int or value >> BITS):
            fields = zip(EngineState._fields, state, strict=True)
            return EngineState(*(v if v is None else count(name, v) for name, v in fields))
    return tuple.__new__(EngineState, state)


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
