"""Passes that an engine logs one by one, with their length, as steps."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple

from stallscope.profiler.capture import Step

_SECOND_NS = 999_999_999  # a stamp names the second in which a line was written


class Iteration(NamedTuple):
    """One pass: the second in which it was logged, and what it did; None is not stated."""

    t_ns: int
    rank: int
    elapsed_ns: int
    prefill_requests: int
    prefill_tokens: int
    decode_requests: int
    device_ns: int | None = None


def steps(iterations: Sequence[Iteration]) -> tuple[Step, ...]:
    """Lay passes on the clock, rank by rank.

    Stamps are whole seconds and lengths are exact: a pass ends within its second and before the
    next one began. Passes are packed as late as both allow, so that a gap between them is one that
    the stamps force.
    """
    found: list[Step] = []
    ordered = sorted(iterations, key=lambda i: i.rank)
    for rank, group in groupby(ordered, key=lambda i: i.rank):
        rows = list(group)
        for row, end_ns in zip(rows, _ends(rows), strict=True):
            found.append(_step(len(found), rank, row, end_ns))
    return tuple(found)


def _ends(rows: Sequence[Iteration]) -> list[int]:
    reached, earliest = rows[0].t_ns, []
    for row in rows:
        reached = max(reached + row.elapsed_ns, row.t_ns)
        earliest.append(reached)
    ends = [earliest[-1]]
    for row, after in zip(reversed(rows[:-1]), reversed(rows[1:]), strict=True):
        ends.append(min(ends[-1] - after.elapsed_ns, row.t_ns + _SECOND_NS))
    return ends[::-1]


def _step(index: int, rank: int, row: Iteration, end_ns: int) -> Step:
    return Step(
        id=index,
        rank=rank,
        start_ns=end_ns - row.elapsed_ns,
        end_ns=end_ns,
        device_ns=row.device_ns,
        host_ns=None,
        phase=_phase(row),
        warmup=False,
        prefill_requests=row.prefill_requests,
        prefill_tokens=row.prefill_tokens,
        decode_requests=row.decode_requests,
        context_tokens=None,
        waiting=None,
        running=None,
        kv_used_bytes=None,
        kv_total_bytes=None,
        attention_pairs=None,
        logit_rows=None,
        blocked_by=None,
    )


def _phase(row: Iteration) -> str:
    if row.prefill_requests and row.decode_requests:
        return "mixed"
    if row.prefill_requests:
        return "prefill"
    return "decode" if row.decode_requests else "other"
