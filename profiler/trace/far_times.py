"""Events whose times cannot be right: far from all others, or longer than any trace."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from stallscope.profiler.trace.timeline import (
    UNKNOWN,
    Calls,
    Copies,
    Finding,
    Floats,
    Kernels,
    Ranges,
)
from stallscope.profiler.wording import were

# Traces last seconds or minutes: of a day, none could be read.
DAY_NS = 86_400 * 10**9

Table = Kernels | Copies | Calls | Ranges
AnyTable = TypeVar("AnyTable", Kernels, Copies, Calls, Ranges)
Launched = TypeVar("Launched", Kernels, Copies)


@dataclass(frozen=True, slots=True)
class Near:
    """A trace's tables without such events, and how many of each table those were."""

    kernels: Kernels
    copies: Copies
    calls: Calls
    ranges: tuple[Ranges, ...]
    lost_kernels: int = 0
    lost: int = 0  # of all tables, kernels included


def near_times(kernels: Kernels, copies: Copies, calls: Calls, ranges: Sequence[Ranges]) -> Near:
    """Leave out what starts or ends more than a day from the median start, or lasts longer.

    Of an even number of events the earlier of the two middle ones is the median, so that one stays.

    A launch call that is left out is then not known to its kernels.
    """
    tables: tuple[Table, ...] = (kernels, copies, calls, *ranges)
    filled = [table for table in tables if len(table)]
    if not filled:
        return Near(kernels, copies, calls, tuple(ranges))
    first_ns = min(int(table.start_ns.min()) for table in filled)
    last_ns = max(int(table.end_ns.max()) for table in filled)
    if last_ns - first_ns <= DAY_NS:
        return Near(kernels, copies, calls, tuple(ranges))
    starts = np.concatenate([table.start_ns for table in filled])
    middle_ns = float(np.partition(starts, (len(starts) - 1) // 2)[(len(starts) - 1) // 2])
    masks = [_is_near(table, middle_ns) for table in tables]
    lost = [int(np.count_nonzero(~mask)) for mask in masks]
    return Near(
        _launched_near(_kept(kernels, masks[0]), middle_ns),
        _launched_near(_kept(copies, masks[1]), middle_ns),
        _kept(calls, masks[2]),
        tuple(_kept(table, mask) for table, mask in zip(ranges, masks[3:], strict=True)),
        lost[0],
        sum(lost),
    )


def far_finding(near: Near) -> Iterator[Finding]:
    """Say how many events were left out, if any were."""
    if not near.lost:
        return
    events = were(near.lost, "event")
    reason = (
        f"{events} left out whose times cannot be right: more than a day from the median of the "
        "trace, or longer than a day"
    )
    if near.lost_kernels:
        reason += f"; {lost_kernels(near.lost_kernels, near.lost_kernels + len(near.kernels))}"
    yield Finding("far_times", reason)


def lost_kernels(lost: int, of: int) -> str:
    """Say how many kernels were lost and what that does to the figures."""
    return (
        f"among them {lost:,} of {of:,} kernels, so that the device was busy for longer, and idle "
        "for less, than the figures say"
    )


def _is_near(table: Table, middle_ns: float) -> NDArray[np.bool_]:
    start, end = table.start_ns.astype(np.float64), table.end_ns.astype(np.float64)  # no overflow
    near: NDArray[np.bool_] = (
        (_distance(start, middle_ns) <= DAY_NS)
        & (_distance(end, middle_ns) <= DAY_NS)
        & (end - start <= DAY_NS)
    )
    return near


def _distance(times: Floats, middle_ns: float) -> Floats:
    return np.abs(times - middle_ns)


def _kept(table: AnyTable, mask: NDArray[np.bool_]) -> AnyTable:
    if mask.all():
        return table
    return type(table)(*(getattr(table, field.name)[mask] for field in fields(table)))


def _launched_near(table: Launched, middle_ns: float) -> Launched:
    near = _distance(table.launch_ns.astype(np.float64), middle_ns) <= DAY_NS
    if near.all():
        return table
    return replace(
        table,
        launch_ns=np.where(near, table.launch_ns, UNKNOWN),
        thread=np.where(near, table.thread, UNKNOWN).astype(np.int32),
    )
