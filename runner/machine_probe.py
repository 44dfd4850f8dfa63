"""What this machine reaches, without a model: the device file that `plan --probe` writes."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from stallscope.errors import StallscopeError
from stallscope.profiler.host_fields import other_cores
from stallscope.profiler.spec import DeviceSpec, MachineReading, ProductTime
from stallscope.runner.devices import device_title
from stallscope.runner.dtypes import torch_dtype
from stallscope.runner.machine import device_cache_bytes, device_memory_bytes
from stallscope.runner.out_of_memory import AllocationFailed, out_of_memory
from stallscope.runner.probe import (
    GemmProbe,
    StreamProbe,
    probe_gemm,
    probe_stream,
    stream_buffer_bytes,
)
from stallscope.runner.probe_products import probe_launch, probe_products, weight_amounts


def probe_machine(
    device: str, dtypes: Sequence[str], *, tell: Callable[[str], None] | None = None
) -> MachineReading:
    """Measure bandwidth, products by shape class and launches of "cpu" or "cuda"."""
    say = tell or (lambda _: None)
    total, free = device_memory_bytes(device)
    cache_bytes = device_cache_bytes(device)
    buffer_bytes = stream_buffer_bytes(cache_bytes, free)
    amounts = weight_amounts(cache_bytes, free)
    started, others = time.perf_counter(), other_cores()
    try:
        with out_of_memory("probe"):
            say("reading memory")
            first = probe_stream(buffer_bytes, device)
            say("launching small operators")
            launch_s = probe_launch(device)
            gemms: dict[str, GemmProbe] = {}
            products: list[ProductTime] = []
            for dtype in dtypes:
                say(f"multiplying in {dtype}")
                gemms[dtype] = probe_gemm(torch_dtype(dtype), device)
                products.extend(probe_products(dtype, device, amounts=amounts))
            say("reading memory again")
            last = probe_stream(buffer_bytes, device)
    except AllocationFailed as failure:
        raise StallscopeError(
            f"the probe got no memory ({failure.message}); free some and try again"
        ) from None
    taken = _cores(others)
    stream = max((first, last), key=lambda probe: probe.bytes_per_s)
    best = {dtype: gemm.flops_per_s for dtype, gemm in gemms.items()}
    spec = DeviceSpec(
        name=device_title(device),
        peak_flops=best,
        memory_bytes=total,
        memory_bytes_per_s=stream.bytes_per_s,
        kind="achievable",
        is_cpu=device == "cpu",
        sources=_sources(stream, {dtype: gemm.n for dtype, gemm in gemms.items()}),
        products=tuple(products),
        launch_s=launch_s,
    )
    change = last.bytes_per_s / first.bytes_per_s - 1.0
    return MachineReading(spec, time.perf_counter() - started, taken, change)


def _cores(others: Callable[[], float]) -> float | None:
    try:
        return others()
    except (OSError, ValueError):  # a sandbox may hide the figures
        return None


def _sources(stream: StreamProbe, sizes: dict[str, int]) -> dict[str, str]:
    shapes = ", ".join(f"{dtype} of size {n}" for dtype, n in sizes.items())
    return {
        "peak_flops": f"measured: the best square product, {shapes}",
        "memory_bytes_per_s": f"measured: {stream.kernel} over {stream.buffer_bytes:,} bytes, the "
        "better of two readings",
        "memory_bytes": "the system, within the control group's limit",
        "products": "measured: median pass over matrices that take weight_bytes together",
        "launch_s": "measured: adding to 64 numbers, again and again",
    }
