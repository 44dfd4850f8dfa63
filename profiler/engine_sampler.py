"""Sample the engine's own state: requests waiting and running, KV bytes used.

The state stands between two calls that set it. So its samples need no thread that wakes ten times a
second beside the engine, at 0.1 ms each: they are worked out from the changes, whenever rows are
about to be written. Like what the engine's thread leaves they are notes, of which rows are made
when the run is over.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from typing import NamedTuple

from stallscope.profiler.counts import count

# A process that was stopped said nothing for as long: its state is not made up for by a burst.
LONGEST_GAP_NS = 2_000_000_000


class EngineState(NamedTuple):
    """What the engine last said about itself; None is not known."""

    waiting: int | None = None
    running: int | None = None
    kv_used_bytes: int | None = None
    kv_total_bytes: int | None = None


State = tuple[int | None, int | None, int | None, int | None]  # an EngineState's fields
UNKNOWN: State = (None, None, None, None)


def plain_state(state: tuple[int | None, ...]) -> State:
    """Return the state in plain ints; TypeError or ValueError name the field that is no count."""
    fields = zip(EngineState._fields, state, strict=True)
    waiting, running, used, total = (v if v is None else count(name, v) for name, v in fields)
    return waiting, running, used, total


StateNote = tuple[str, int, str, State]  # "state", the time in ns, which engine, how it stands


class EngineSamples:
    """The engine's state at regular moments; set by the engine's threads, taken by the writer's."""

    def __init__(self, clock: Callable[[], int], hz: float, *, engine: str = "engine") -> None:
        self._clock = clock
        self._engine = engine
        self._period_ns = round(min(1e9 / hz, 1e18))
        self._due_ns = clock() + self._period_ns
        self._state = UNKNOWN
        self._changes: deque[tuple[int, State]] = deque()

    def changed(self, state: State) -> None:
        """Note that the state is another one from now on."""
        self._changes.append((self._clock(), state))

    def take(self) -> Iterator[StateNote]:
        """Return what has come due; nothing of an engine that has said nothing."""
        now_ns = self._clock()
        if now_ns - self._due_ns > LONGEST_GAP_NS:
            self._due_ns = now_ns
        while self._due_ns <= now_ns:
            while self._changes and self._changes[0][0] <= self._due_ns:
                _, self._state = self._changes.popleft()
            if self._state != UNKNOWN:
                yield "state", self._due_ns, self._engine, self._state
            self._due_ns += self._period_ns
