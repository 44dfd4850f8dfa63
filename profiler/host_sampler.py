"""Sample the host's counters, each as often as it is worth its reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]

from stallscope.profiler.capture import DeviceSample
from stallscope.profiler.evidence import NotObservable

HOST = "host"


@dataclass(frozen=True, slots=True)
class HostField:
    """One counter: its name, its unit, how to read it, and what to do where that fails.

    Reading may answer None: nothing new this time. One that is costly to read or slow to change is
    read every `every_ns` at most; `close` lets go of what reading holds open.
    """

    name: str
    unit: str
    read: Callable[[], float | None]
    how: str = "install psutil for this system"
    every_ns: int = 0
    close: Callable[[], None] | None = None


class HostSampler:
    """Reads every field of the host that answers."""

    name = "host"

    def __init__(self, fields: tuple[HostField, ...]) -> None:
        self._given = self._fields = fields
        self._due_ns: dict[str, int] = {}

    def probe(self) -> tuple[NotObservable, ...]:
        """Read each field once; drop and return those that fail."""
        answering, missing = [], []
        for field in self._fields:
            try:
                field.read()
                answering.append(field)
            except (OSError, ValueError, psutil.Error) as error:
                missing.append(NotObservable(field.name, str(error), field.how))
        self._fields = tuple(answering)
        return tuple(missing)

    def sample(self, t_ns: int) -> Iterator[DeviceSample]:
        """Read the fields that answered the probe and are due."""
        for field in self._fields:
            if t_ns >= self._due_ns.get(field.name, t_ns):
                self._due_ns[field.name] = t_ns + field.every_ns
                value = field.read()
                if value is not None:
                    yield DeviceSample(t_ns, HOST, field.name, float(value), field.unit)

    def close(self) -> tuple[NotObservable, ...]:
        """Let go of the files."""
        for field in self._given:
            if field.close is not None:
                field.close()
        return ()
