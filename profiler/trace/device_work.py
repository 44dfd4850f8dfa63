"""What ran on one device, kernels and copies, in order of time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stallscope.profiler.trace.intervals import Union, fresh_ns, union, union_in_order
from stallscope.profiler.trace.phases import Joined
from stallscope.profiler.trace.queued import split_gaps
from stallscope.profiler.trace.timeline import Ints, SmallInts, Trace


@dataclass(frozen=True, slots=True)
class DeviceWork:
    """Rows of a device in order of start, the step of each (−1: none), and when it was busy.

    `fresh_ns` is the time that a row adds to what began before it: rows that run at once count
    once. `kernels` is when a kernel ran, `busy` when a kernel, copy or memset did, `queued` when
    none did although the next one was launched already, `waiting` when it was not, between the
    first row and the last.
    """

    end_ns: Ints
    step: SmallInts
    fresh_ns: Ints
    kernels: Union
    busy: Union
    waiting: Union
    queued: Union


def device_work(trace: Trace, device: int, of_kernels: Joined, of_copies: Joined) -> DeviceWork:
    """Collect one device's rows."""
    kernels, copies = trace.kernels, trace.copies
    start, end, launch = kernels.start_ns, kernels.end_ns, kernels.launch_ns
    step = of_kernels.step
    if len(trace.devices) > 1:
        here = kernels.device == device
        start, end, launch, step = start[here], end[here], launch[here], step[here]
    if np.any(start[1:] < start[:-1]):
        order = np.argsort(start, kind="stable")
        start, end, launch, step = start[order], end[order], launch[order], step[order]
    ran, places = union_in_order(start, end)
    busy = ran
    there = np.flatnonzero(copies.device == device)
    if len(there):
        there = there[np.argsort(copies.start_ns[there], kind="stable")]
        at = np.searchsorted(start, copies.start_ns[there])
        start = np.insert(start, at, copies.start_ns[there])
        end = np.insert(end, at, copies.end_ns[there])
        launch = np.insert(launch, at, copies.launch_ns[there])
        step = np.insert(step, at, of_copies.step[there])
        busy, places = union_in_order(start, end)
    waiting, queued = split_gaps(busy, launch[places], trace.calls)
    return DeviceWork(end, step, fresh_ns(start, end), ran, busy, waiting, queued)


def at_any(of_devices: Sequence[Union]) -> Union:
    """Return the time that any of the unions holds."""
    if len(of_devices) == 1:
        return of_devices[0]
    none = np.empty(0, dtype=np.int64)
    return union(
        np.concatenate([none, *(one.start_ns for one in of_devices)]),
        np.concatenate([none, *(one.end_ns for one in of_devices)]),
    )
