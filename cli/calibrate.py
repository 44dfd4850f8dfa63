"""`plan --calibrate`: learn from recorded runs what the engine takes of a device."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.errors import InputError, UsageError
from stallscope.output import note
from stallscope.same_device import check_same_device

if TYPE_CHECKING:
    from stallscope.profiler.spec import Calibration, DeviceSpec


def with_calibration(device: DeviceSpec | None, captures: Sequence[Path]) -> DeviceSpec | None:
    """Return the device calibrated on these captures; as it was where there are none."""
    if not captures:
        return device
    if device is None:
        raise UsageError("--calibrate is of a device: add --gpu, --gpu-file or --probe")
    from stallscope.analyzers.cost.learn import learn
    from stallscope.profiler.capture_file import read_capture

    recorded = [read_capture(path) for path in captures]
    for path, capture in zip(captures, recorded, strict=True):
        check_same_device(path, capture.subject.device, device)
    try:
        fitted = learn(device, recorded, at=time.strftime("%Y-%m-%d"))
    except ValueError as error:
        raise InputError(f"--calibrate: {error}") from None
    note(told(fitted))
    return dataclasses.replace(device, calibration=fitted)


def told(fitted: Calibration) -> str:
    """Say what was learnt, in one line."""
    from stallscope.analyzers.cost.learnt_words import how_far_off, learnt_from

    return f"calibrated on {learnt_from(fitted)}, {how_far_off(fitted)}"


def keep(device: DeviceSpec, target: Path) -> None:
    """Write a device file, with what was measured and learnt."""
    from stallscope.files import write_text
    from stallscope.profiler.device_products import device_text

    write_text(target, device_text(device))
    note(f"wrote {target}")
