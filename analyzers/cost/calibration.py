"""The machine of a run: a device's datasheet, or what the run's own probes reached."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stallscope.analyzers.cost.kv_bytes import cache_dtype
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.cost.shape_classes import class_times
from stallscope.analyzers.event_fields import whole_events
from stallscope.analyzers.stated.stored import as_stored
from stallscope.analyzers.stated.weights import method_of
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.spec import ModelSpec, Subject

# Weight-only formats compute in 16 bit, and so do fp8 and nvfp4 on a chip without such units;
# int8 is of weights alone unless the checkpoint says otherwise.
_COMPUTES_IN: Mapping[str, tuple[str, ...]] = {
    "int8": ("fp16", "bf16"),
    "int4": ("fp16", "bf16"),
    "mxfp4": ("bf16", "fp16"),
    "fp8": ("fp8", "fp16", "bf16"),
    "nvfp4": ("fp4", "fp16", "bf16"),
}


@dataclass(frozen=True, slots=True)
class NoCostModel:
    """Why there is no cost model, and the option that would give one.

    `is_contradiction`: there could be one, but the run shows that it would be of something else.
    """

    reason: str
    how: str
    is_contradiction: bool = False


def _probes(capture: Capture, name: str) -> list[Event]:
    return [e for e in whole_events(capture, "probe") if e.data["probe"] == name]


def linear_times(capture: Capture) -> Mapping[str, tuple[tuple[int, float], ...]]:
    """Collect the measured seconds of one linear by group and rows; the best of repeats."""
    best: dict[str, dict[int, float]] = {}
    for event in _probes(capture, "linear"):
        rows, time_s = int(event.data["rows"]), float(event.data["time_s"])
        group = best.setdefault(str(event.data["op"]), {})
        group[rows] = min(time_s, group.get(rows, time_s))
    return {group: tuple(sorted(times.items())) for group, times in best.items()}


def working_set_bandwidth(capture: Capture) -> float | None:
    """Return bytes/s at the run's working-set size, where that was probed apart.

    A working set that fits in the last-level cache is read faster than memory can deliver.
    """
    values = [
        e.data["value"] for e in _probes(capture, "stream") if e.data["when"] == "working-set"
    ]
    return max(values) if values else None


def peak_flops(subject: Subject) -> float | None:
    """Return the dense FLOP/s that a device reaches at the weights' dtype; None where unknown."""
    if subject.device is None or subject.dtype is None:
        return None
    for dtype in _computes_in(subject.dtype, subject.model):
        if dtype in subject.device.peak_flops:
            return subject.device.peak_flops[dtype]
    return None


def _computes_in(dtype: str, model: ModelSpec | None) -> tuple[str, ...]:
    """List what products compute in, the first that a device has; a checkpoint may say it."""
    formats = _COMPUTES_IN.get(dtype, (dtype,))
    stored = model.quantization if model is not None and model.dtype == dtype else None
    if stored is None or stored.activations is None:
        return formats
    if not stored.activations:
        return tuple(f for f in formats if f in ("fp16", "bf16"))
    return ("int8", *formats) if dtype == "int8" else formats


def build_cost_model(capture: Capture) -> CostModel | NoCostModel:
    """Build the cost model of a run from its subject and probes, or say what is missing."""
    subject = capture.subject
    if subject.model is None and subject.device is None:
        return NoCostModel(
            "neither the model nor the device is known", "add --gpu and --model to judge"
        )
    if subject.model is None:
        return NoCostModel("the model is not known", "add --model PRESET or config.json")
    if subject.device is None:
        return NoCostModel("the device is not known", "add --gpu NAME")
    if subject.dtype is None:
        method = method_of(capture)
        reason = "the weights' dtype is not known"
        if method is not None:
            reason = f"the weights are quantized ({method}), in which format is not known"
        return NoCostModel(reason, "add --dtype")
    peak = peak_flops(subject)
    if peak is None:
        reason = f"{subject.device.name} has no known peak for {subject.dtype}"
        how = f"give it as peak_flops.{subject.dtype} in the file of --gpu-file"
        return NoCostModel(reason, how)
    times, linears_from = linear_times(capture), Machine.linears_from
    if not times and subject.device.products:
        times = class_times(subject.model, subject.dtype, subject.device.products)
        linears_from = "linears between the shapes that were probed on this machine"
    machine = Machine(
        peak_flops=peak,
        bytes_per_s=working_set_bandwidth(capture) or subject.device.memory_bytes_per_s,
        kind=subject.device.kind,
        linear_times=times,
        linears_from=linears_from,
        ranks=subject.num_devices,
        link_bytes_per_s=subject.device.link_bytes_per_s,
        # Our runner offloads nothing, and a CPU has one memory; of other engines nothing tells.
        holds_all=subject.device.is_cpu or subject.engine == "builtin",
        offloaded_bytes=subject.cpu_offload_bytes or 0.0,
        host_link_bytes_per_s=subject.device.to_host_bytes_per_s,
        launch_s=subject.device.launch_s,
        calibration=subject.device.calibration,
    )
    spec = as_stored(capture, subject.model)
    return CostModel(spec, subject.dtype, cache_dtype(subject) or subject.dtype, machine)
