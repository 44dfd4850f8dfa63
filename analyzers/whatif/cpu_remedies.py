"""What helps a step that a processor's arithmetic limits: the dtype it multiplies fastest, cores.

What helps a GPU does not: no processor here multiplies in fp8, and its cores are what share a step.
"""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.result import Remedy
from stallscope.analyzers.whatif.engine_flags import IN_16, IN_32

# Read once, the width that a processor without units for 16 bit has to widen to.
_IN_32 = "compute in fp32: where lscpu lists no avx512_bf16, amx_bf16 or bf16, 16 bit is widened"
_IN_16 = "compute in 16 bit: where lscpu lists avx512_bf16, amx_bf16 or bf16, it has units for that"
_OTHER: Mapping[str, tuple[str, str, Mapping[str, str], str]] = {
    "bf16": ("fp32", _IN_32, IN_32, "twice the memory, and twice the bytes that decode reads"),
    "fp16": ("fp32", _IN_32, IN_32, "twice the memory, and twice the bytes that decode reads"),
    "fp32": ("bf16", _IN_16, IN_16, "precision: a quality to be checked"),
}
_CORES: Mapping[str, str] = {
    "any": "taskset -c, or a container's limit, over physical cores; OMP_NUM_THREADS as many",
    "vllm": "VLLM_CPU_OMP_THREADS_BIND",
    "llama.cpp": "--threads and --threads-batch",
}


def faster_dtype(dtype: str, peaks: Mapping[str, float], phase: str) -> list[Remedy]:
    """Name the other width, unless the device's own `peaks` (FLOP/s by dtype) show it no faster."""
    if dtype not in _OTHER:
        return []
    other, action, flags, cost = _OTHER[dtype]
    if dtype in peaks and peaks.get(other, float("inf")) <= peaks[dtype]:
        return []
    return [
        Remedy(
            action,
            flags,
            None,
            f"{'TTFT' if phase == 'prefill' else 'TPOT'} before and after, on the same prompts",
            (f"mfu_{phase}", f"intensity_{phase}", "ridge"),
            cost=cost,
        )
    ]


def more_cores(phase: str) -> Remedy:
    """Share a step between more cores: the devices of a run on a processor."""
    return Remedy(
        "share the arithmetic of a step between more cores, where it runs on fewer than there are",
        _CORES,
        None,
        f"{'TTFT' if phase == 'prefill' else 'TPOT'} falls in a new run on more cores",
        (f"mfu_{phase}", f"intensity_{phase}", "ridge"),
        cost="cores that others may not use, or a larger machine",
    )
