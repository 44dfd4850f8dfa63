"""What to do about the kernels of a trace that says nothing of a model or of its phases."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.kernel_mix import KernelMix
from stallscope.analyzers.result import Link, Remedy, WontHelp
from stallscope.analyzers.words import percent
from stallscope.profiler.evidence import NotObservable

_WORTH = 0.25  # of the kernel time: less is not worth a remedy
_FUSE = Remedy(
    "fuse elementwise and norm kernels, so that what one writes the next need not read again",
    {"pytorch": "torch.compile(model)", "any": "a library's fused kernels (norm, activation, …)"},
    None,
    "fewer kernels, and their share of the kernel time falls in a new trace",
    ("kernel_rate", "kernel_length_mean", "dram_throughput"),
    cost="time to compile at the start",
)
_FEWER_BYTES = Remedy(
    "read fewer bytes: the matrices of matrix-vector products in fewer bits",
    {"pytorch": "torchao.quantization.quantize_", "vllm": "--quantization (of a checkpoint)"},
    None,
    "GEMV kernels get shorter in a new trace; check the results' quality",
    ("dram_throughput", "kernel_length_mean"),
    cost="a quality to be checked, and arithmetic to unpack",
)
_MORE_ROWS = Remedy(
    "read them for more rows: a larger batch makes matrix products of matrix-vector products",
    {"any": "more requests or samples in one call"},
    None,
    "GEMM kernels stand in place of GEMV in a new trace",
    ("dram_throughput",),
    cost="each request waits for the others of its batch",
)
_NARROWER: Mapping[str | None, tuple[str, Mapping[str, str]]] = {
    "32 bits": (
        "compute matrix products in 16 bits or TF32: their names show 32-bit arithmetic",
        {"pytorch": "torch.set_float32_matmul_precision('high'), or torch.autocast"},
    ),
    "TF32": (
        "compute matrix products in 16 bits: their names show TF32",
        {"pytorch": "torch.autocast(device_type='cuda', dtype=torch.bfloat16)"},
    ),
    "16 bits": (
        "compute matrix products in 8 bits, where the device has units for it: their names show "
        "16 bits",
        {"pytorch": "torchao float8", "vllm": "--quantization fp8"},
    ),
    None: (
        "see in which dtype matrix products compute, and whether a narrower one has faster units",
        {"pytorch": "record_shapes=True in torch.profiler shows dtypes"},
    ),
}


def kernel_remedies(bottleneck: str, mix: KernelMix) -> list[Remedy]:
    """Name what follows from the kernels alone, for `bandwidth` and `compute`."""
    small = mix.share("elementwise", "norm")
    fuse = [_FUSE] if small >= _WORTH and mix.fused < small / 2 else []
    if bottleneck == "compute":
        return [*(_narrower(mix) if mix.share("gemm") >= _WORTH else []), *fuse]
    found = [(small, fuse)]
    if mix.share("gemv") >= _WORTH:
        found.append((mix.share("gemv"), [_FEWER_BYTES, _MORE_ROWS]))
    return [r for _, remedies in sorted(found, key=lambda f: -f[0]) for r in remedies]


def _narrower(mix: KernelMix) -> list[Remedy]:
    if mix.width == "8 bits":
        return []
    action, flags = _NARROWER[mix.width]
    check = "GEMM kernels get shorter in a new trace; check the results' quality"
    return [
        Remedy(
            action,
            flags,
            None,
            check,
            ("tensor_active", "kernel_length_mean"),
            cost="precision: a quality to be checked",
        )
    ]


def kernels_wont_help(bottleneck: str, mix: KernelMix) -> tuple[WontHelp, ...]:
    """Name popular fixes that touch none of the kernels that take the time."""
    if bottleneck == "bandwidth":
        return (
            WontHelp("a GPU with more FLOP/s at the same bandwidth", "arithmetic waits for memory"),
            WontHelp("raising the power limit", "the memory clock does not depend on it"),
        )
    small = mix.share("elementwise", "norm")
    found = [
        WontHelp("a GPU with more memory bandwidth at the same FLOP/s", "arithmetic takes the time")
    ]
    if small < _WORTH:
        why = f"elementwise and norm kernels take only {percent(small)} of kernel time"
        found.append(WontHelp("fusing small kernels", why))
    return tuple(found)


def kernel_chain(bottleneck: str, mix: KernelMix) -> tuple[Link, ...]:
    """Say how the kernels come to be limited, and claim nothing of a model."""
    if bottleneck == "compute":
        share, what = mix.share("gemm"), "matrix products"
        effect, evidence = "arithmetic sets their time", "tensor_active"
    else:
        share = mix.share("gemv", "elementwise", "norm")
        what = "kernels that do little with each byte they move"
        effect, evidence = "memory bandwidth sets their time", "dram_throughput"
    if share < _WORTH:
        return ()
    return (Link(f"{percent(share)} of kernel time is in {what}", effect, (evidence,)),)


UNTOLD = NotObservable(
    "what an LLM's steps would call for",
    "no model is given, and no step is marked as prefill or decode",
    "add --model, and mark steps: ranges (NVTX, record_function) named prefill and decode",
)
