"""What to do about links: copies from the host, to it and between devices, and communication."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.result import Remedy, WontHelp
from stallscope.analyzers.trace_copies import prevailing_way
from stallscope.analyzers.whatif.engine_flags import FEWER_DEVICES, ON_DEVICE
from stallscope.analyzers.words import percent
from stallscope.profiler.evidence import Measure
from stallscope.profiler.wording import figure

_MUCH_PAGEABLE = 0.1  # of the bytes from the host
_LITTLE_TO_HIDE_BEHIND = 0.1  # of the time in kernels
_MARKED = ("copies_marked", "copy_bytes_per_step", "copy_rate")

_KEEP = Remedy(
    "keep on the device what is copied to it in every step, such as offloaded weights",
    ON_DEVICE,
    None,
    "host_to_device_bytes fall to the steps' inputs in a new trace",
    ("copies_to_device", "host_to_device_bytes", "host_to_device_rate", *_MARKED),
    cost="device memory, which then lacks for KV",
)
_FIT = Remedy(
    "where it does not fit, make it: fewer bits for each weight, or more GPUs to share them",
    {
        "vllm": "--quantization (of a checkpoint), --tensor-parallel-size",
        "sglang": "--quantization (of a checkpoint), --tp-size",
        "llama.cpp": "a Q4_K_M file",
    },
    None,
    "all weights stay on the devices; compare tokens/s",
    ("copies_to_device", "host_to_device_bytes", *_MARKED),
    cost="a quality to be checked, or more GPUs",
)
_PIN = Remedy(
    "copy from pinned memory: pageable memory is copied twice, and waits for the host",
    {"pytorch": "tensor.pin_memory(), then .to(device, non_blocking=True)"},
    None,
    "pageable_share falls and host_to_device_rate rises in a new trace",
    ("pageable_share", "host_to_device_rate"),
    cost="pinned memory, which the system cannot page out",
)
_OVERLAP = Remedy(
    "copy on a second stream, while kernels of another step run",
    {"pytorch": "torch.cuda.Stream(), with pinned memory and non_blocking=True"},
    None,
    "copies_exposed falls in a new trace",
    ("copies_exposed", "gpu_busy", "copies_marked"),
    cost="a second buffer on the device, and a change of code",
)
_LESS_BACK = Remedy(
    "copy less back to the host: token ids instead of logits, and no KV cache that stays in use",
    {"pytorch": "reduce on the device before .cpu()", "vllm": "fewer logprobs; no KV offloading"},
    None,
    "copies_to_host falls in a new trace",
    ("copies_to_host", "copies_exposed"),
    cost="features that need what is copied: logprobs, a KV cache in host memory",
)
_LESS_BETWEEN = Remedy(
    "split the model over fewer devices, or only over those with the fastest links",
    FEWER_DEVICES,
    None,
    "the exposed share of communication falls in a new trace; compare tokens/s",
    ("communication_exposed", "copies_between_devices"),
    cost="less memory and arithmetic for a step: TPOT of one request may grow",
)
_HIDE_BETWEEN = Remedy(
    "look at the links themselves, and let devices compute while they exchange",
    {
        "any": "nvidia-smi topo -m shows which devices are joined by NVLink",
        "sglang": "--enable-two-batch-overlap (expert parallel)",
    },
    None,
    "the exposed share of communication falls in a new trace",
    ("communication_exposed", "copies_between_devices"),
    cost="another slot, bridge or driver",
)
_OF_WAY = {
    "copies_to_device": "copies from the host take",
    "copies_to_host": "copies to the host take",
    "copies_between_devices": "copies between devices take",
    "communication_exposed": "communication takes",
}


def link_text(found: Mapping[str, Measure]) -> str | None:
    """Say which link takes most of the traced window, and how fast it runs."""
    way = prevailing_way(found)
    if way is None:
        return _marked_text(found)
    text = f"{_OF_WAY[way]} {percent(found[way].value)} of the traced window"
    rate = found.get("host_to_device_rate") if way == "copies_to_device" else None
    return text if rate is None else f"{text}, {rate.value / 1e9:.1f} GB/s for each device"


def _marked_text(found: Mapping[str, Measure]) -> str | None:
    rate, size = found.get("copy_rate"), found.get("copy_bytes_per_step")
    if rate is None or size is None:
        return None
    moved = f"{figure(size.value / 1e6)} MB of copies a step at {figure(rate.value / 1e9, 2)} GB/s"
    return f"the loop waits for {moved}"


def link_remedies(found: Mapping[str, Measure]) -> list[Remedy]:
    """Follow the way that prevails; without a trace, communication between devices."""
    way = prevailing_way(found)
    if way is None and "copies_marked" in found:
        return [_KEEP, _FIT, _OVERLAP]
    if way == "copies_to_device":
        return [_KEEP, _FIT, *([_PIN] if _is_pageable(found) else []), *_overlap(found)]
    if way == "copies_to_host":
        return [_LESS_BACK, *_overlap(found)]
    return [_LESS_BETWEEN, _HIDE_BETWEEN]


def _is_pageable(found: Mapping[str, Measure]) -> bool:
    return "pageable_share" in found and found["pageable_share"].value >= _MUCH_PAGEABLE


def _overlap(found: Mapping[str, Measure]) -> list[Remedy]:
    return [] if _few_kernels(found) else [_OVERLAP]


def _few_kernels(found: Mapping[str, Measure]) -> bool:
    return "gpu_busy" in found and found["gpu_busy"].value < _LITTLE_TO_HIDE_BEHIND


def links_wont_help(found: Mapping[str, Measure]) -> tuple[WontHelp, ...]:
    """Name popular fixes that leave the links as they are."""
    listed = [WontHelp("a GPU with more FLOP/s on the same links", "it would wait for them longer")]
    is_copied = prevailing_way(found) in ("copies_to_device", "copies_to_host")
    if is_copied and _few_kernels(found):
        busy = percent(found["gpu_busy"].value)
        why = f"kernels run in only {busy} of the time, so there is little to hide copies behind"
        listed.append(WontHelp("copying while kernels run", why))
    else:
        why = "launches are not what the device waits for"
        listed.append(WontHelp("CUDA graphs or compilation", why))
    return tuple(listed)
