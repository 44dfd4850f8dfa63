"""Probe the machine before and after a run, and describe it by what it reached."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stallscope.profiler.recorder import Recorder
from stallscope.profiler.spec import DTYPE_BYTES, DeviceSpec
from stallscope.runner.devices import device_title, table_device
from stallscope.runner.dtypes import torch_dtype
from stallscope.runner.job import Job
from stallscope.runner.machine import device_cache_bytes, device_memory_bytes
from stallscope.runner.out_of_memory import AllocationFailed, out_of_memory
from stallscope.runner.probe import (
    GemmProbe,
    StreamProbe,
    probe_gemm,
    probe_stream,
    step_weight_bytes,
    stream_buffer_bytes,
)

LEAST_STREAM_BYTES = 64 << 20  # less is read from caches on most machines
UNSTABLE_SHARE = 0.15  # probes before and after differing by more mark the run unstable


@dataclass(frozen=True, slots=True)
class Readings:
    """What the device reached at one time."""

    stream: StreamProbe
    gemm: GemmProbe


def take_readings(job: Job, device: str, recorder: Recorder, when: str) -> Readings | None:
    """Probe bandwidth and matrix products, and record them; None where memory is refused."""
    cache_bytes = device_cache_bytes(device)
    buffer_bytes = stream_buffer_bytes(cache_bytes, device_memory_bytes(device)[1])
    dtype = job.options.dtype
    try:
        with out_of_memory("probe"):
            stream = _largest_stream(buffer_bytes, device)
            _record_stream(recorder, when, stream)
            working_bytes = step_weight_bytes(job.spec, DTYPE_BYTES[dtype])
            if when == "before" and cache_bytes and working_bytes < 2 * cache_bytes:
                _record_stream(recorder, "working-set", probe_stream(working_bytes, device))
            gemm = probe_gemm(torch_dtype(dtype), device)
    except AllocationFailed as failure:
        record_unprobed(recorder, f"the device's limits {when} the run", failure)
        return None
    recorder.event(
        "probe",
        probe="gemm",
        when=when,
        dtype=dtype,
        n=gemm.n,
        value=gemm.flops_per_s,
        unit="FLOP/s",
    )
    return Readings(stream, gemm)


def _largest_stream(buffer_bytes: int, device: str) -> StreamProbe:
    """Probe with the largest buffer that memory allows, by halves; the record tells its size."""
    while True:
        try:
            with out_of_memory("probe"):
                return probe_stream(buffer_bytes, device)
        except AllocationFailed:
            if buffer_bytes < 2 * LEAST_STREAM_BYTES:
                raise
            buffer_bytes //= 2


def record_unprobed(recorder: Recorder, what: str, failure: AllocationFailed) -> None:
    """Record that there was no memory to probe with: no finding about the run itself."""
    recorder.event(
        "not_observable", what=what, reason=failure.message, how="leave memory free for the probes"
    )


def is_unstable(readings: Iterable[Readings]) -> bool:
    """Tell whether a probe's lowest value is more than 15 % below its highest."""
    readings = tuple(readings)
    for values in (
        [r.stream.bytes_per_s for r in readings],
        [r.gemm.flops_per_s for r in readings],
    ):
        if values and min(values) < (1 - UNSTABLE_SHARE) * max(values):
            return True
    return False


def describe_device(job: Job, device: str, readings: Iterable[Readings]) -> DeviceSpec | None:
    """Return the table's figures for a known device, else the best that the probes reached.

    The best, not the mean: what others on the machine take away only ever lowers a probe.
    """
    known = table_device(device)
    readings = tuple(readings)
    if known is not None or not readings:
        return known
    stream = max((r.stream for r in readings), key=lambda probe: probe.bytes_per_s)
    gemm = max((r.gemm for r in readings), key=lambda probe: probe.flops_per_s)
    return DeviceSpec(
        name=device_title(device),
        peak_flops={job.options.dtype: gemm.flops_per_s},
        memory_bytes=device_memory_bytes(device)[0],
        memory_bytes_per_s=stream.bytes_per_s,
        kind="achievable",
        is_cpu=device == "cpu",
        sources={
            "peak_flops": f"measured: square {job.options.dtype} product of size {gemm.n}, the "
            "best of the probes before and after the run",
            "memory_bytes_per_s": f"measured: {stream.kernel} over {stream.buffer_bytes:,} bytes, "
            "the best of the probes before and after the run",
            "memory_bytes": "the system, within the control group's limit",
        },
    )


def _record_stream(recorder: Recorder, when: str, probe: StreamProbe) -> None:
    recorder.event(
        "probe",
        probe="stream",
        when=when,
        value=probe.bytes_per_s,
        unit="B/s",
        buffer_bytes=probe.buffer_bytes,
        kernel=probe.kernel,
    )
