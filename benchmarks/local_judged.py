"""Calibrate on three local runs of one process, and hold predictions against other processes."""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from local_measured import MODELS, Key

from stallscope.analyzers.cost.calibrated import calibrated_model
from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.learn import learn
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.step.shape import computed_shape
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.devices import load_device_file
from stallscope.profiler.spec import Calibration, DeviceSpec, Subject

# Small and large, both dtypes, one and many requests.
CALIBRATION = (
    Key("tiny-26m", "fp32", 1, 768),
    Key("middle-66m", "bf16", 16, 256),
    Key("llama-125m", "fp32", 8, 128),
)


@dataclass(frozen=True, slots=True)
class Process:
    """What one process measured: the machine, and each run's steps."""

    at: str
    device: DeviceSpec
    probe_other_cores: float | None
    runs: dict[Key, tuple[Step, ...]]
    other_cores: dict[Key, float]


@dataclass(frozen=True, slots=True)
class Miss:
    """One run's phase: seconds of its usual step, and what was expected."""

    key: Key
    phase: str
    seconds: float
    expected: float
    other_cores: float

    @property
    def error(self) -> float:
        """The miss relative to what was measured; negative is too fast."""
        return self.expected / self.seconds - 1.0


def read_process(file: Path) -> Process:
    """Read what `measure` wrote."""
    data: dict[str, Any] = json.loads(file.read_text())
    described = file.with_suffix(".device.json")
    described.write_text(json.dumps(data["device"]))
    runs: dict[Key, tuple[Step, ...]] = {}
    others: dict[Key, float] = {}
    for run in data["runs"]:
        key = Key(*(run[field.name] for field in dataclasses.fields(Key)))
        runs[key] = (*runs.get(key, ()), *(Step(**step) for step in run["steps"]))
        others[key] = max(others.get(key, 0.0), run["other_cores"])
    device = load_device_file(described)
    return Process(data["at"], device, data["probe_other_cores"], runs, others)


def subject_of(key: Key, device: DeviceSpec) -> Subject:
    """Return the subject of a run on a device."""
    model = next(spec for spec in MODELS if spec.name == key.model)
    return Subject(model, device, 1, key.dtype, key.dtype, engine="builtin")


def calibrate(process: Process) -> Calibration:
    """Learn from the three runs."""
    captures = [
        Capture(subject_of(key, process.device), steps=process.runs[key]) for key in CALIBRATION
    ]
    return learn(process.device, captures, at=process.at)


def misses(process: Process, device: DeviceSpec) -> Iterator[Miss]:
    """Predict every run that did not calibrate, on the device as it is described."""
    for key, steps in process.runs.items():
        if key in CALIBRATION:
            continue
        cost = build_cost_model(Capture(subject=subject_of(key, device)))
        if not isinstance(cost, CostModel):
            raise ValueError(f"{key} has no cost model")
        model = calibrated_model(cost) or cost
        for phase in ("prefill", "decode"):
            known = [s for s in steps if s.phase == phase and computed_shape(s) is not None]
            if not known:
                continue
            shapes = [computed_shape(s) for s in known]
            expected = statistics.median(model.step_time(s).floor for s in shapes if s is not None)
            seconds = statistics.median((s.end_ns - s.start_ns) * 1e-9 for s in known)
            yield Miss(key, phase, seconds, expected, process.other_cores[key])


def mape(found: Sequence[Miss]) -> float:
    """Return the mean absolute miss."""
    return sum(abs(miss.error) for miss in found) / len(found)
