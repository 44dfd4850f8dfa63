"""A device's readings, sampled together: each may fail and come back without the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stallscope.profiler.capture import DeviceSample, Event
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.nvml.failures import LOST, code_of, translated
from stallscope.profiler.nvml.readings import Choice, Reading, probe_choice
from stallscope.profiler.samplers import SamplingStopped


class ReadingGroup:
    """Samples the readings that answered when they were added."""

    def __init__(self, nvml: Any, units: Mapping[str, str]) -> None:
        self._nvml = nvml
        self._units = units
        self._readings: list[Reading] = []
        self._failing: set[Reading] = set()

    @property
    def names(self) -> frozenset[str]:
        """Return the counters that are sampled."""
        return frozenset(name for reading in self._readings for name in reading.names)

    def add(self, reading: Reading | None) -> None:
        """Take a reading that answered."""
        if reading is not None:
            self._readings.append(reading)

    def add_first(self, choice: Choice) -> tuple[NotObservable, ...]:
        """Take the first reading of a choice that answers; return what is left out, and why."""
        reading, missing = probe_choice(self._nvml, choice)
        self.add(reading)
        return missing

    def sample(self, t_ns: int) -> Iterator[DeviceSample | Event]:
        """Read all; one that fails leaves a `gap` event, once until it answers again.

        Raises SamplingStopped where the GPU is lost or nothing answers.
        """
        for reading in self._readings:
            try:
                yield from reading.samples(t_ns, self._units)
                self._failing.discard(reading)
            except self._nvml.NVMLError as error:
                yield from self._gap(t_ns, reading, error)

    def _gap(self, t_ns: int, reading: Reading, error: Exception) -> Iterator[Event]:
        known = reading in self._failing
        self._failing.add(reading)
        reason = translated(error).reason
        if code_of(error) in LOST or len(self._failing) == len(self._readings):
            raise SamplingStopped(reason)
        if not known:
            what = f"{', '.join(reading.names)} of {reading.device}"
            yield Event(t_ns, "gap", None, {"what": what, "reason": reason})
