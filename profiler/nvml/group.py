"""A device's readings, sampled together: each may fail and come back without the others."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from stallscope.profiler.capture import DeviceSample, Event
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.nvml.failures import GONE, LOST, code_of, translated
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
        """Read all; what fails leaves a `gap` event, once until it answers again.

        Raises SamplingStopped where the GPU is lost, or NVML itself.
        """
        failed: dict[Reading, Exception] = {}
        for reading in self._readings:
            try:
                yield from reading.samples(t_ns, self._units)
            except self._nvml.NVMLError as error:
                failed[reading] = error
                if code_of(error) in LOST:
                    break
        self._stop_where_lost(failed)
        yield from _gaps(t_ns, {r: e for r, e in failed.items() if r not in self._failing})
        self._failing = set(failed)

    def _stop_where_lost(self, failed: Mapping[Reading, Exception]) -> None:
        all_failed = len(failed) == len(self._readings)
        for error in failed.values():
            code = code_of(error)
            if code in LOST or (all_failed and code in GONE):
                raise SamplingStopped(translated(error).reason)


def _gaps(t_ns: int, failed: Mapping[Reading, Exception]) -> Iterator[Event]:
    """Say what began to fail, in one event where the reason is one."""
    names: dict[tuple[str, str], list[str]] = {}
    for reading, error in failed.items():
        names.setdefault((reading.device, translated(error).reason), []).extend(reading.names)
    for (device, reason), what in names.items():
        data = {"what": f"{', '.join(what)} of {device}", "reason": reason}
        yield Event(t_ns, "gap", None, data)
