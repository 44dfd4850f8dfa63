"""Whether a start failed since the weights alone are more than a device has."""

from __future__ import annotations

from stallscope.analyzers.cost.arithmetic import weight_bytes
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.measures import measure
from stallscope.analyzers.refusals import buffer_of, refused_at
from stallscope.analyzers.stated.engine_figures import engine_figures
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.evidence import Measure

ALONE = "weights_alone"  # of what stage the advice is, whatever stage the log tells
# At the others the weights were loaded, so that they did fit, whatever is counted of them.
_NOT_LOADED = ("start", "starting", "weights")


def weights_measure(capture: Capture, cost: CostModel | None) -> Measure | None:
    """Return the weights on a device over its memory: the engine's figure, else by the config."""
    device = capture.subject.device
    if cost is None or device is None or not device.memory_bytes:
        return None
    held = weight_bytes(cost.spec, cost.dtype, tensor_parallel=cost.machine.ranks)
    source = "weights on a device ÷ its memory, counted from the config"
    for figure in engine_figures(capture):
        if figure.measure == "weights_bytes_stated":
            held, source = figure.engine, f"{figure.source} ÷ the device's memory"
    return measure("weights_of_memory", held / device.memory_bytes, "derived", source)


def advised_stage(event: Event, capture: Capture, cost: CostModel | None) -> str | None:
    """Return the stage that advice goes by: ALONE where the weights do not fit by themselves."""
    stage = refused_at(event)
    return ALONE if _excess(event, capture, cost) is not None else stage


def excess_text(event: Event, capture: Capture, cost: CostModel | None) -> str:
    """Say how large the weights are where they do not fit; nothing where they may."""
    share = _excess(event, capture, cost)
    if share is None:
        return ""
    return f": the weights alone are {percent(share)} of the device's memory"


def fits_in(dtype: str, capture: Capture, cost: CostModel | None) -> bool:
    """Tell whether the weights would leave some of a device's memory in a dtype."""
    device = capture.subject.device
    if cost is None or device is None or not device.memory_bytes:
        return True
    held = weight_bytes(cost.spec, dtype, tensor_parallel=cost.machine.ranks)
    return held < device.memory_bytes


def _excess(event: Event, capture: Capture, cost: CostModel | None) -> float | None:
    found = weights_measure(capture, cost)
    stage = refused_at(event)
    is_early = stage in _NOT_LOADED or (stage is None and not _ran(capture))
    is_early = is_early and buffer_of(event) is None
    device = capture.subject.device
    if found is None or device is None or not device.memory_bytes or not is_early:
        return None
    offloaded = (capture.subject.cpu_offload_bytes or 0.0) / device.memory_bytes
    share = found.value - offloaded
    return share if share > 1.0 else None


def _ran(capture: Capture) -> bool:
    return bool(capture.steps or capture.requests or capture.engine_samples)
