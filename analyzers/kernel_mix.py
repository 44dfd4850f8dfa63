"""What the kernels of a trace are, where nothing else tells what ran."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from stallscope.profiler.capture import Capture

MARKED = frozenset({"prefill", "decode", "mixed"})
# Dtypes as libraries spell them in the names of matrix products: cuBLAS and CUTLASS (s1688 is TF32,
# h16816 fp16), cuDNN, rocBLAS and hipBLASLt (BBS, HHS: bf16 and fp16, summed in fp32), Triton.
_WIDTHS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "8 bits",
        re.compile(r"e[45]m[23]|e2m1|fp[48]|int8|(?<![a-z0-9])[siu]8(?![0-9])|nvjet_qq", re.I),
    ),
    ("16 bits", re.compile(r"f(loat)?16|fp16|half|h(gemm|1688|16816|mma)|nvjet_(hs|ts)", re.I)),
    ("16 bits", re.compile(r"_(BB|BS|HH|HS)S?_")),
    ("TF32", re.compile(r"tf32|s1688", re.I)),
    ("32 bits", re.compile(r"sgemm|scudnn|ffma|f32f32|<float|<float, |_SB_|engine<float", re.I)),
)


@dataclass(frozen=True, slots=True)
class KernelMix:
    """Shares of the kernel time: by class, and that of kernels which torch.compile fused.

    `width` is how most of the time in matrix products is computed, as their names show; None where
    they do not.
    """

    shares: Mapping[str, float]
    fused: float
    width: str | None

    def share(self, *classes: str) -> float:
        """Return the share of the kernel time in some classes."""
        return sum(self.shares.get(c, 0.0) for c in classes)


def shares_by_class(capture: Capture) -> Mapping[str, float]:
    """Return each class's share of the time of all kernels and copies, the largest first."""
    total = sum(k.busy_ns for k in capture.kernels)
    times: dict[str, int] = {}
    for k in capture.kernels:
        times[k.kernel_class] = times.get(k.kernel_class, 0) + k.busy_ns
    ranked = sorted(times.items(), key=lambda item: (-item[1], item[0]))
    return {name: busy_ns / total for name, busy_ns in ranked if busy_ns}


def lone_mix(capture: Capture) -> KernelMix | None:
    """Describe the kernels of a trace that says nothing else of what ran.

    None without kernels, and where a model, a request, an engine's gauge or a step marked as
    prefill or decode says that an LLM was served.
    """
    told = capture.subject.model is not None or capture.requests or capture.engine_samples
    phases = {s.phase for s in capture.steps} | {k.phase for k in capture.kernels}
    total = sum(k.busy_ns for k in capture.kernels)
    if told or phases & MARKED or not total:
        return None
    small = [k for k in capture.kernels if k.kernel_class in ("elementwise", "norm")]
    fused = sum(k.busy_ns for k in small if k.name.startswith("triton_")) / total
    return KernelMix(shares_by_class(capture), fused, _width(capture))


def _width(capture: Capture) -> str | None:
    times: dict[str | None, int] = {}
    for k in capture.kernels:
        if k.kernel_class == "gemm":
            width = next((w for w, names in _WIDTHS if names.search(k.name)), None)
            times[width] = times.get(width, 0) + k.busy_ns
    return max(times, key=lambda width: times[width]) if times else None
