"""What the options of `plan` say, checked."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from stallscope.errors import UsageError
from stallscope.sizes import parse_bytes

if TYPE_CHECKING:
    from stallscope.analyzers.plan.options import PlanOptions
    from stallscope.profiler.spec import DeviceSpec, ModelSpec


LOOK_UP = "lookup"  # of drafts in the prompt, as --draft names it


def named(dtypes: tuple[str | None, ...]) -> tuple[str, ...]:
    """Return the dtypes that were given."""
    return tuple(dtype for dtype in dtypes if dtype is not None)


def check_offload(options: PlanOptions) -> None:
    """Refuse to keep more weights in host memory than there are."""
    from stallscope.analyzers.plan.memory import memory_map
    from stallscope.analyzers.plan.options import subject_of

    whole = dataclasses.replace(options, cpu_offload_bytes=0)
    there = memory_map(whole, subject_of(whole)).weights_bytes
    if options.cpu_offload_bytes > there:
        raise UsageError(
            f"--cpu-offload: {options.model.name} has {there / 2**30:.1f} GiB of weights on each "
            "device; give less"
        )


def offloaded(size: str | None, device: DeviceSpec | None) -> int:
    """Return the bytes that --cpu-offload names, where the link to the host is known."""
    if size is None:
        return 0
    if device is not None and device.to_host_bytes_per_s is None:
        raise UsageError(
            f"--cpu-offload: the link of {device.name} to its host is not known; "
            "give host_link_bytes_per_s in a --gpu-file"
        )
    return parse_bytes(size, "--cpu-offload")


def parse_dtypes(
    given: list[str] | None, option: str, known: tuple[str, ...]
) -> tuple[str | None, ...]:
    """Return the dtypes that an option names, once each, as a comma list or repeated."""
    names = tuple(dict.fromkeys(name for part in given or () for name in part.split(",")))
    for name in names:
        if name not in known:
            raise UsageError(f"{option}: {name!r} is not one of {', '.join(known)}")
    return names or (None,)


def kv_lengths(text: str | None, spec: ModelSpec) -> tuple[int, ...]:
    """Return the lengths that --kv-table names, else the usual ones that the model can reach."""
    if text is not None:
        return parse_lengths(text)
    from stallscope.analyzers.kv_life import DEFAULT_LENGTHS

    reached = tuple(length for length in DEFAULT_LENGTHS if length <= spec.max_position)
    return reached or (spec.max_position,)


def parse_lengths(text: str) -> tuple[int, ...]:
    """Return the sequence lengths that --kv-table names."""
    try:
        lengths = tuple(int(part) for part in text.split(","))
    except ValueError:
        lengths = (0,)
    if min(lengths) < 1:
        raise UsageError(f"--kv-table: {text!r} is not a list of lengths; write 512,1024,2048")
    return lengths
