"""Memory that an engine reserved at its start, and that nothing uses."""

from __future__ import annotations

import statistics

from stallscope.analyzers.load.device_demand import is_telemetry_only
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture

MUCH = 0.5  # of a device's memory: weights of a model that fits well take less


def reserved_note(capture: Capture, load: str) -> tuple[str, ...]:
    """Say of a GPU that idles with much memory in use whose that is; elsewhere nothing."""
    if load != "idle" or not is_telemetry_only(capture):
        return ()
    values: dict[str, dict[str, list[float]]] = {}
    for sample in capture.device_samples:
        if sample.name in ("memory_used_bytes", "memory_total_bytes"):
            values.setdefault(sample.device, {}).setdefault(sample.name, []).append(sample.value)
    shares = [
        statistics.fmean(v["memory_used_bytes"]) / statistics.fmean(v["memory_total_bytes"])
        for v in values.values()
        if len(v) == 2 and any(v["memory_total_bytes"])
    ]
    most = max(shares, default=0.0)
    if most < MUCH:
        return ()
    return (
        f"{percent(most)} of a GPU's memory is in use while it idles. An inference engine reserves "
        "its KV pool at the start (vLLM --gpu-memory-utilization, SGLang --mem-fraction-static): "
        "that is its budget, not what the model needs, which is weights, activations and the KV of "
        "the requests in flight.",
    )
