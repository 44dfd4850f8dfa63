"""The device that options name, with the calibration that is kept for it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.kept_devices import find_kept, folder, short_name
from stallscope.named_specs import named_device, with_link
from stallscope.output import note

if TYPE_CHECKING:
    from stallscope.profiler.spec import DeviceSpec


def described_device(
    gpu: str | None, gpu_file: Path | None, link: str | None = None, *, uncalibrated: bool = False
) -> DeviceSpec | None:
    """Return the device of --gpu or --gpu-file, calibrated where a calibration is known of it.

    The table goes before a kept file in all but the calibration; what is not in the table may be
    kept.
    """
    if gpu is None or gpu_file is not None:
        device = named_device(gpu, gpu_file, link)
        return None if device is None else _as_asked(device, uncalibrated=uncalibrated)
    kept = find_kept(gpu)
    if kept is None or _is_listed(gpu):
        device = named_device(gpu, None, link)
    else:
        device = with_link(kept, link)
    if device is None or kept is None or kept.calibration is None or uncalibrated:
        return None if device is None else _as_asked(device, uncalibrated=uncalibrated)
    from stallscope.analyzers.cost.learnt_words import how_far_off, learnt_from

    fitted = kept.calibration
    note(
        f"calibrated by {learnt_from(fitted)} ({fitted.engine}) on {fitted.at}, "
        f"{how_far_off(fitted)}, as kept in {folder() / short_name(gpu)}.json; --uncalibrated "
        "leaves it out"
    )
    return replace(device, calibration=fitted)


def _as_asked(device: DeviceSpec, *, uncalibrated: bool) -> DeviceSpec:
    return replace(device, calibration=None) if uncalibrated else device


def _is_listed(name: str) -> bool:
    from stallscope.profiler.devices import device_names

    return name.strip().lower() in device_names()
