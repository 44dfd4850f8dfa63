"""From traces, one for each process or rank, to a capture that analyzers can judge."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from stallscope.profiler.capture import Capture, Event, Source
from stallscope.profiler.known_devices import known_device
from stallscope.profiler.spec import Subject
from stallscope.profiler.trace.reduce import Origin, Reduced, reduce_trace
from stallscope.profiler.trace.timeline import Trace


def capture_of(traces: Sequence[Trace]) -> Capture:
    """Reduce traces to one capture; several are taken as ranks of one run.

    Raises ValueError without a trace.
    """
    return capture_of_ranks([reduce_trace(trace) for trace in traces])


def capture_of_ranks(reduced: Sequence[Reduced]) -> Capture:
    """Put reduced traces together as the ranks of one run. Raises ValueError without any."""
    if not reduced:
        raise ValueError("no trace to reduce")
    ranks = _ranks([one.origin for one in reduced])
    placed = [
        _placed(one, rank, first_id=sum(len(r.steps) for r in reduced[:index]))
        for index, (one, rank) in enumerate(zip(reduced, ranks, strict=True))
    ]
    if len(reduced) == 1:
        placed = list(reduced)
    return Capture(
        subject=_subject(reduced),
        steps=tuple(s for one in placed for s in one.steps),
        kernels=tuple(k for one in placed for k in one.kernels),
        device_samples=tuple(s for one in placed for s in one.samples),
        events=(*_check_events(reduced, ranks), *(e for one in placed for e in one.events)),
        sources=tuple(
            Source(i, one.origin.kind, one.origin.path, "trace", 0, 0)
            for i, one in enumerate(reduced)
        ),
        meta=_meta(reduced, ranks),
    )


def _placed(one: Reduced, rank: int, *, first_id: int) -> Reduced:
    """Number a trace's rows as those of a rank among others, and tell its devices from theirs."""

    def label(device: str) -> str:
        return f"rank {rank} {device}"

    return replace(
        one,
        steps=tuple(s._replace(rank=rank, id=s.id + first_id) for s in one.steps),
        kernels=tuple(k._replace(rank=rank, device=label(k.device)) for k in one.kernels),
        samples=tuple(s._replace(device=label(s.device)) for s in one.samples),
        events=tuple(
            e._replace(
                data={**e.data, "rank": rank}
                | ({"device": label(e.data["device"])} if "device" in e.data else {})
            )
            for e in one.events
        ),
    )


def _ranks(origins: Sequence[Origin]) -> tuple[int, ...]:
    known = [origin.rank for origin in origins if origin.rank is not None]
    if len(known) == len(origins) and len(set(known)) == len(known):
        return tuple(known)
    return tuple(range(len(origins)))


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
    return {
        "ended": {},
        "trace": {
            "tools": sorted({one.origin.tool for one in reduced}),
            "ranks": list(ranks),
            "counted": all(one.counted for one in reduced),
            "devices": sorted({d.product for one in reduced for d in one.devices if d.product}),
        },
    }


def _check_events(reduced: Sequence[Reduced], ranks: Sequence[int]) -> Iterator[Event]:
    """Make one event of each check. Ranks that answer nothing block a verdict only together."""
    for sentence in _missing_ranks([one.origin for one in reduced], ranks):
        yield Event(0, "check", None, {"sentence": sentence})
    blocks = all(any(check.bottleneck for check in one.checks) for one in reduced)
    for rank, one in zip(ranks, reduced, strict=True):
        for check in one.checks:
            sentence = check.sentence if len(reduced) == 1 else f"Rank {rank}: {check.sentence}"
            data: dict[str, Any] = {"sentence": sentence}
            if blocks and check.bottleneck is not None:
                data |= {"class": check.bottleneck, "blocks": ["verdict"]}
            yield Event(0, "check", None, data)


def _missing_ranks(origins: Sequence[Origin], ranks: Sequence[int]) -> Iterator[str]:
    """Name the ranks of the run that no trace is of, where the traces say how many there were."""
    size = max((origin.world_size or 0 for origin in origins), default=0)
    if size <= len(origins):
        return
    if any(origin.rank is None for origin in origins):
        yield f"The run had {size} ranks; {len(origins)} of them were given."
        return
    missing = ", ".join(str(rank) for rank in range(size) if rank not in ranks)
    yield (
        f"The run had {size} ranks; {len(origins)} of them were given. Missing: {missing}. "
        "How the given ones wait for those cannot be told."
    )
