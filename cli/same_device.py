"""Whether a recorded run is of the device that it is to tell about."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.errors import InputError
from stallscope.output import note

if TYPE_CHECKING:
    from stallscope.profiler.spec import DeviceSpec


def check_same_device(path: Path, ran_on: DeviceSpec | None, device: DeviceSpec) -> None:
    """Refuse a run of another device or kind; of a run that names none only say so."""
    if ran_on is None:
        note(f"{path} does not say what it ran on; it is taken for a run of {device.name}")
        return
    if ran_on.is_cpu != device.is_cpu:
        raise InputError(
            f"--calibrate: {path} ran on {_with_kind(ran_on)}, not on {_with_kind(device)}; "
            "give runs of the device that is planned"
        )
    if _usual_name(ran_on) != _usual_name(device):
        raise InputError(
            f"--calibrate: {path} ran on {ran_on.name}, not on {device.name}; give runs of the "
            "device that is planned, or, if it is the same one, its name in a --gpu-file"
        )


def _with_kind(device: DeviceSpec) -> str:
    return f"{device.name} (a {'CPU' if device.is_cpu else 'GPU'})"


def _usual_name(device: DeviceSpec) -> str:
    """Return one name for a device, whether the driver or the device table named it."""
    from stallscope.profiler.known_devices import table_name

    return (table_name(device.name) or " ".join(device.name.split())).lower()
