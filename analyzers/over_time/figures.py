"""The figures whose movement shows that a limit changed, and which of them speak of which limit."""

from __future__ import annotations

from stallscope.analyzers.result import Window

# Name, unit, and in words; docs/metrics.md has the same list.
FIGURES = {
    "running": ("requests", "running requests"),
    "waiting": ("requests", "waiting requests"),
    "kv_used": ("fraction", "KV pool in use"),
    "input_tokens_rate": ("tokens/s", "prompt tokens taken in"),
    "output_tokens_rate": ("tokens/s", "tokens generated"),
    "step_time": ("s", "time of a step"),
    "share_bandwidth": ("fraction", "share of a step that reads weights and KV"),
    "share_compute": ("fraction", "share of a step that is arithmetic"),
    "share_host": ("fraction", "share of a step that is the host's"),
    "share_interconnect": ("fraction", "share of a step in communication and transfer"),
    "dram_throughput": ("fraction", "DRAM throughput"),
    "tensor_active": ("fraction", "tensor pipe activity"),
    "gpu_busy": ("fraction", "GPU busy"),
    "sm_clock": ("Hz", "SM clock"),
}
_OF_LIMIT = {
    "kv": ("kv_used", "running", "waiting"),
    "seqs": ("running", "waiting"),
    "tokens": ("input_tokens_rate", "waiting"),
    "prefill": ("input_tokens_rate", "waiting"),
    "batch": ("waiting", "running"),
    "stalled": ("output_tokens_rate", "waiting"),
    "imbalance": ("waiting",),
    "deferred": ("waiting",),
    "front": ("waiting",),
}
_OF_CLASS = {
    "bandwidth": ("share_bandwidth", "dram_throughput"),
    "compute": ("share_compute", "tensor_active"),
    "host": ("share_host", "gpu_busy"),
    "interconnect": ("share_interconnect",),
    "device": ("sm_clock",),
    "client": ("running",),
    "capacity": ("kv_used",),
    "none": ("running", "gpu_busy"),
}


def telling(before: Window, after: Window) -> tuple[str, ...]:
    """Order the figures for a change: those of the new limit, of the old one, then the others."""
    return tuple(dict.fromkeys((*_of(after), *_of(before), *FIGURES)))


def _of(window: Window) -> tuple[str, ...]:
    if window.limit is not None:
        return _OF_LIMIT[window.limit]
    # Where nothing queues any more, that is what changed.
    return (
        *_OF_CLASS.get(window.bottleneck, ()),
        *(("waiting",) if window.load == "served" else ()),
    )
