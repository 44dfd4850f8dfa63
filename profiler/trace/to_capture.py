"""From traces, one for each process or rank, to a capture that analyzers can judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any

from stallscope.profiler.capture import Capture, Event, Source
from stallscope.profiler.known_devices import known_device
from stallscope.profiler.spec import Subject
from stallscope.profiler.trace.ranks import (
    check_ranks,
    clock_offsets,
    missing_ranks,
    rank_numbers,
)
from stallscope.profiler.trace.reduce import Reduced, reduce_trace
from stallscope.profiler.trace.timeline import Trace
from stallscope.profiler.wall_clock import WallClock


def capture_of(traces: Sequence[Trace]) -> Capture:
    """Reduce traces to one capture; several are taken as ranks of one run.

    Raises ValueError without a trace.
    """
    return capture_of_ranks([reduce_trace(trace) for trace in traces])


def capture_of_ranks(reduced: Sequence[Reduced]) -> Capture:
    """Put reduced traces together as the ranks of one run, on the first one's clock.

    Raises ValueError without any, InputError where they are of different runs.
    """
    if not reduced:
        raise ValueError("no trace to reduce")
    check_ranks(reduced)
    origins = [one.origin for one in reduced]
    ranks, offsets = rank_numbers(origins), clock_offsets(origins)
    placed = list(reduced)
    if len(reduced) > 1:
        placed = [
            _placed(one, rank, offset, first_id=sum(len(r.steps) for r in reduced[:index]))
            for index, (one, rank, offset) in enumerate(zip(reduced, ranks, offsets, strict=True))
        ]
    return Capture(
        subject=_subject(reduced),
        steps=tuple(s for one in placed for s in one.steps),
        kernels=tuple(k for one in placed for k in one.kernels),
        device_samples=tuple(
            sorted((s for one in placed for s in one.samples), key=attrgetter("t_ns"))
        ),
        events=(*_check_events(reduced, ranks), *(e for one in placed for e in one.events)),
        sources=tuple(
            Source(i, one.origin.kind, one.origin.path, "trace", offset, 0)
            for i, (one, offset) in enumerate(zip(reduced, offsets, strict=True))
        ),
        meta=_meta(reduced, ranks),
    )


def _placed(one: Reduced, rank: int, offset_ns: int, *, first_id: int) -> Reduced:
    """Number a trace's rows as those of a rank among others, and tell its devices from theirs."""

    def label(device: str) -> str:
        return f"rank {rank} {device}"

    return replace(
        one,
        steps=tuple(
            s._replace(
                rank=rank,
                id=s.id + first_id,
                start_ns=s.start_ns + offset_ns,
                end_ns=s.end_ns + offset_ns,
            )
            for s in one.steps
        ),
        kernels=tuple(k._replace(rank=rank, device=label(k.device)) for k in one.kernels),
        samples=tuple(
            s._replace(device=label(s.device), t_ns=s.t_ns + offset_ns) for s in one.samples
        ),
        events=tuple(
            e._replace(
                t_ns=e.t_ns + offset_ns,
                data={**e.data, "rank": rank}
                | ({"device": label(e.data["device"])} if "device" in e.data else {}),
            )
            for e in one.events
        ),
    )


def _subject(reduced: Sequence[Reduced]) -> Subject:
    devices = [device for one in reduced for device in one.devices]
    products = {device.product for device in devices}
    product = products.pop() if len(products) == 1 else None
    if product is None:
        return Subject(num_devices=max(1, len(devices)))
    memory = devices[0].facts.get("memory_bytes")
    spec = known_device(product, None if memory is None else int(memory))
    return Subject(device=spec, num_devices=len(devices))


def _meta(reduced: Sequence[Reduced], ranks: Sequence[int]) -> dict[str, Any]:
    unix_ns = reduced[0].origin.unix_ns
    return {
        "ended": {},
        "clock": None if unix_ns is None else WallClock(unix_ns).meta(),
        "trace": {
            "tools": sorted({one.origin.tool for one in reduced}),
            "ranks": list(ranks),
            "of_one_rank": any(one.origin.rank is not None for one in reduced),
            "counted": all(one.counted for one in reduced),
            "devices": sorted({d.product for one in reduced for d in one.devices if d.product}),
        },
    }


def _check_events(reduced: Sequence[Reduced], ranks: Sequence[int]) -> Iterator[Event]:
    """Make one event of each check. Ranks that answer nothing block a verdict only together."""
    for sentence in missing_ranks([one.origin for one in reduced], ranks):
        yield Event(0, "check", None, {"sentence": sentence})
    blocks = all(any(check.bottleneck for check in one.checks) for one in reduced)
    for rank, one in zip(ranks, reduced, strict=True):
        for check in one.checks:
            sentence = check.sentence if len(reduced) == 1 else f"Rank {rank}: {check.sentence}"
            data: dict[str, Any] = {"sentence": sentence}
            if check.about is not None:
                data["about"] = check.about
            if blocks and check.bottleneck is not None:
                data |= {"class": check.bottleneck, "blocks": ["verdict"]}
            yield Event(0, "check", None, data)
