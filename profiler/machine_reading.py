"""What a probe of a whole machine found, and how quiet the machine was meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.profiler.spec import DeviceSpec

CALM_CORES = 0.10  # taken by others: more, and the figures are lower than the machine's own
CALM_CHANGE = 0.15  # of the bandwidth from the probe's start to its end


@dataclass(frozen=True, slots=True)
class MachineReading:
    """A device as measured in `seconds`.

    `other_cores` is what everything else kept busy, None where the system does not tell;
    `stream_change` the bandwidth's change from the first reading to the last.
    """

    device: DeviceSpec
    seconds: float
    other_cores: float | None
    stream_change: float

    @property
    def is_disturbed(self) -> bool:
        """Whether others took enough of the machine to show."""
        taken = self.other_cores is not None and self.other_cores > CALM_CORES
        return taken or abs(self.stream_change) > CALM_CHANGE
