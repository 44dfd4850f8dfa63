"""What ran on one device, kernels and copies, in order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallscope.profiler.trace.intervals import Union, fresh_ns, union
from stallscope.profiler.trace.phases import Joined
from stallscope.profiler.trace.timeline import Ints, SmallInts, Trace


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """Rows of a device in order of start, the step of each (−1: none), and when it was busy.

    `fresh_ns` is the time that a row adds to what began before it: rows that run at once count
    once. `kernels` is when a kernel ran, `busy` when a kernel, copy or memset did.
    """

    end_ns: Ints
    step: SmallInts
    fresh_ns: Ints
    kernels: Union
    busy: Union


def device_work(trace: Trace, device: int, of_kernels: Joined, of_copies: Joined) -> DeviceWork:
    """Collect one device's rows."""
    kernels, copies = trace.kernels, trace.copies
    start, end, step = kernels.start_ns, kernels.end_ns, of_kernels.step
    if len(trace.devices) > 1:
        here = kernels.device == device
        start, end, step = start[here], end[here], step[here]
    ran = union(start, end)
    there = copies.device == device
    if there.any():
        start = np.concatenate((start, copies.start_ns[there]))
        end = np.concatenate((end, copies.end_ns[there]))
        step = np.concatenate((step, of_copies.step[there]))
        busy = union(start, end)
    else:
        busy = ran
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        start, end, step = start[order], end[order], step[order]
    return DeviceWork(end, step, fresh_ns(start, end), ran, busy)


def busy_at_all(devices: Sequence[DeviceWork]) -> Union:
    """Return when any of the devices was busy."""
    if len(devices) == 1:
        return devices[0].busy
    none = np.empty(0, dtype=np.int64)
    return union(
        np.concatenate([none, *(device.busy.start_ns for device in devices)]),
        np.concatenate([none, *(device.busy.end_ns for device in devices)]),
    )
