"""Kernels and copies of one device reduced to one row for each name and phase."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stallscope.profiler.capture import KernelSummary
from stallscope.profiler.trace.intervals import Union, overlap_ns, slices, union
from stallscope.profiler.trace.timeline import Copies, CopyKind, Ints, Kernels, SmallInts

# Of each phase this many names are listed; the others are added up by class.
MOST_NAMES = 60
REST = "(further names)"
COPY_NAMES = {
    CopyKind.OTHER: "copy",
    CopyKind.HOST_TO_DEVICE: "copy, host to device",
    CopyKind.DEVICE_TO_HOST: "copy, device to host",
    CopyKind.WITHIN_DEVICE: "copy, within a device",
    CopyKind.BETWEEN_DEVICES: "copy, between devices",
    CopyKind.MEMSET: "memset",
}
_WAYS = (CopyKind.OTHER, CopyKind.HOST_TO_DEVICE, CopyKind.DEVICE_TO_HOST, CopyKind.BETWEEN_DEVICES)

Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class DeviceRows:
    """What to summarise: one device's rows, chosen by masks, under its label and rank."""

    label: str
    rank: int
    kernels: Mask
    copies: Mask


@dataclass(frozen=True, slots=True)
class Phased:
    """The phase of every kernel and copy, as an index into `names`."""

    names: tuple[str, ...]
    kernels: SmallInts
    copies: SmallInts


def kernel_rows(
    device: DeviceRows,
    ran: Union,
    kernels: Kernels,
    copies: Copies,
    phased: Phased,
    *,
    names: Sequence[str],
    classes: Sequence[str],
) -> Iterator[KernelSummary]:
    """Yield the rows of one device; `ran` is when a kernel of any kind did.

    `busy_ns` is the sum of durations; kernels that overlap count each. Communication is one row for
    each phase, and so is each way to copy; their `exposed_ns` is the time in which no other kernel
    of the device ran. `names` and `classes` belong to the index in `kernels.name`. Copies within
    the device and memsets use its own memory and wait for no link: they are "elementwise".
    """
    computing, busy = device.kernels, ran
    communicating = device.kernels & False
    if "communication" in classes:
        communicates = np.array([c == "communication" for c in classes])[kernels.name]
        computing, communicating = computing & ~communicates, computing & communicates
        busy = union(kernels.start_ns[computing], kernels.end_ns[computing])
    for index, phase in enumerate(phased.names):
        key = (device.label, device.rank, phase)
        here = phased.kernels == index
        yield from _by_name(key, kernels, computing & here, names, classes)
        there = communicating & here
        top = _longest_name(kernels, there, names)
        yield from _moving(key, "communication", top, kernels, there, busy)
        for kind, name in COPY_NAMES.items():
            chosen = device.copies & (phased.copies == index) & (copies.kind == kind)
            moves = "copy" if kind in _WAYS else "elementwise"
            yield from _moving(key, moves, name, copies, chosen, busy)


def _by_name(
    key: tuple[str, int, str],
    kernels: Kernels,
    chosen: Mask,
    names: Sequence[str],
    classes: Sequence[str],
) -> Iterator[KernelSummary]:
    counts, busy = _sums(kernels, chosen, len(names))
    order = np.argsort(-busy, kind="stable")
    order = order[counts[order] > 0]
    for name in order[:MOST_NAMES].tolist():
        yield KernelSummary(
            *key, classes[name], names[name], int(counts[name]), int(busy[name]), None
        )
    rest: dict[str, tuple[int, int]] = {}
    for name in order[MOST_NAMES:].tolist():
        count, time_ns = rest.get(classes[name], (0, 0))
        rest[classes[name]] = (count + int(counts[name]), time_ns + int(busy[name]))
    for kernel_class, (count, time_ns) in rest.items():
        yield KernelSummary(*key, kernel_class, REST, count, time_ns, None)


def _sums(kernels: Kernels, chosen: Mask, size: int) -> tuple[Ints, Ints]:
    """Return launches and nanoseconds by name; sums stay exact below 2⁵³ ns, three months."""
    counts, busy = np.zeros(size, dtype=np.int64), np.zeros(size)
    for run in slices(len(kernels)):
        here = chosen[run]
        name = kernels.name[run][here]
        lengths = (kernels.end_ns[run] - kernels.start_ns[run])[here]
        counts += np.bincount(name, minlength=size)
        busy += np.bincount(name, weights=lengths, minlength=size)
    return counts, busy.astype(np.int64)


def _longest_name(kernels: Kernels, chosen: Mask, names: Sequence[str]) -> str:
    if not chosen.any():
        return ""
    counts, busy = _sums(kernels, chosen, len(names))
    return names[int(np.argmax(np.where(counts > 0, busy, -1)))]


def _moving(
    key: tuple[str, int, str],
    kernel_class: str,
    name: str,
    rows: Kernels | Copies,
    chosen: Mask,
    computing: Union,
) -> Iterator[KernelSummary]:
    if not chosen.any():
        return
    start_ns, end_ns = rows.start_ns[chosen], rows.end_ns[chosen]
    busy_ns, moving = int((end_ns - start_ns).sum()), union(start_ns, end_ns)
    hidden_ns = overlap_ns(computing, moving)
    exposed_ns = None if kernel_class == "elementwise" else moving.total_ns - hidden_ns
    yield KernelSummary(*key, kernel_class, name, len(start_ns), busy_ns, exposed_ns)
