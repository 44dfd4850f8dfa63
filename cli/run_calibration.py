"""After a run: what its steps teach about its device, stored in its capture and kept if asked."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.calibrate import told
from stallscope.errors import StallscopeError
from stallscope.kept_devices import find_kept, keep_device
from stallscope.output import note

if TYPE_CHECKING:
    from stallscope.profiler.capture import Capture
    from stallscope.profiler.spec import Calibration, DeviceSpec

KEY = "calibration"  # in a capture's meta


def fit_run(path: Path, *, save: bool) -> None:
    """Store what a run's steps teach in its capture; with `save` keep it for later commands.

    A run whose device nobody described well enough is only fitted when it is to be kept: that takes
    a probe of the machine.
    """
    from stallscope.profiler.capture_file import read_capture

    try:
        capture = read_capture(path)
        device = capture.subject.device
        if device is None:
            raise StallscopeError("the run does not say what it ran on")
        kept = find_kept(device.name)
        before = kept.calibration if kept is not None else None
        if save and before is not None and before.captures > 1:
            note(
                f"a calibration by {before.captures} runs is kept and stays; to learn from all "
                f"together: stallscope plan --gpu NAME --calibrate CAPTURE… --save-calibration"
            )
            save = False
        known = _measured(capture, device, kept, probes=save)
        if known is None:
            return
        fitted = _fitted(known, capture)
        _store(path, known, fitted)
        if save:
            note(told(fitted))
            keep_device(dataclasses.replace(known, calibration=fitted))
    except StallscopeError as error:
        if save:
            note(f"no calibration was saved: {error}")


def _measured(
    capture: Capture, device: DeviceSpec, kept: DeviceSpec | None, *, probes: bool
) -> DeviceSpec | None:
    """Return the device as a calibration needs it: of the table, or with products measured."""
    if device.kind == "datasheet":
        return device
    dtype = capture.subject.dtype
    if kept is not None and any(product.dtype == dtype for product in kept.products):
        return kept
    if not probes or dtype is None:
        return None
    from stallscope.plan_probe import note_disturbance, take_reading

    reading = take_reading("cpu" if device.is_cpu else "cuda", (dtype,))
    note_disturbance(reading)
    return reading.device


def _fitted(device: DeviceSpec, capture: Capture) -> Calibration:
    from stallscope.analyzers.cost.learn import learn

    try:
        return learn(device, [capture], at=time.strftime("%Y-%m-%d"))
    except ValueError as error:
        raise StallscopeError(str(error)) from None


def _store(path: Path, device: DeviceSpec, fitted: Calibration) -> None:
    from stallscope.profiler.capture_amend import amend_capture

    how = {"device": device.name, "provenance": "derived", "tested": fitted.is_tested}
    amend_capture(path, KEY, {**how, **dataclasses.asdict(fitted)})
