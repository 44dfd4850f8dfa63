"""Put several sources of one run on one clock and into one capture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from operator import attrgetter
from typing import Any, NamedTuple

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, Event, Source, Step
from stallscope.profiler.file_kinds import InputKind
from stallscope.profiler.joining.answered import is_answered
from stallscope.profiler.joining.devices import joined_devices
from stallscope.profiler.joining.engines import Engines, joined_engines
from stallscope.profiler.joining.parts import ORDER, Part
from stallscope.profiler.joining.placing import Placement, place
from stallscope.profiler.joining.shifted import shifted
from stallscope.profiler.joining.subjects import (
    cap_teller,
    contradictions,
    infers_cap,
    joined_subject,
)
from stallscope.profiler.joining.window import run_span, within_benchmark
from stallscope.profiler.joining.work import work_of
from stallscope.profiler.spec import Subject
from stallscope.profiler.trace.counted import with_counted_steps
from stallscope.profiler.wall_clock import wall_clock

_S = 1_000_000_000
_LONGEST_NS = 1 << 61  # 73 years, on any clock


class Given(NamedTuple):
    """A source as it was read, and the seconds that the user adds to its clock."""

    name: str
    kind: InputKind
    capture: Capture
    offset_s: float | None


def join(given: Sequence[Given]) -> Capture:
    """Join sources into one capture on the clock of the one that tells most of the engine.

    Their order does not matter. Raises InputError where one has no times or cannot be placed.
    """
    parts = sorted(map(_part, given), key=lambda p: (ORDER.index(p.kind), p.name))
    first, *others = parts
    placements = [place(first, other) for other in others]
    moved = [first, *map(_on_clock, others, placements)]
    placed, cut = within_benchmark(moved)
    engines = joined_engines(placed)
    devices = joined_devices(placed, run_span(placed))
    sentences = [p.sentence for p in placements]
    sentences += [*cut, *contradictions(placed), *engines.sentences, *devices.sentences]
    subject = joined_subject(placed)
    steps = next((p.capture.steps for p in placed if p.capture.steps), ())
    requests = next((p.capture for p in placed if p.capture.requests), Capture())
    return Capture(
        subject=subject,
        steps=steps,
        requests=requests.requests,
        tokens=requests.tokens,
        device_samples=devices.samples,
        engine_samples=engines.samples,
        events=_events(placed, sentences, engines, subject),
        kernels=tuple(k for p in placed for k in p.capture.kernels),
        sources=_sources(placed, placements),
        meta=with_counted_steps(_meta(placed), _own_steps(placed))
        | {"devices": devices.facts, "joined": _joined(others, placements)},
        cut=next((p.capture.cut for p in placed if p.capture.cut is not None), None),
    )


def _part(given: Given) -> Part:
    work, wall = work_of(given.capture), wall_clock(given.capture)
    if work is None or work.span_ns[0] == work.span_ns[1]:
        raise InputError(
            f"{given.name}: is {given.kind} of one moment or without times, so nothing puts it "
            "beside other files; give it alone"
        )
    if max(map(abs, work.span_ns)) > _LONGEST_NS:
        raise InputError(f"{given.name}: has times that are none; give it alone")
    if given.offset_s is None:
        return Part(given.name, given.kind, given.capture, wall, work)
    if wall is not None:
        wall = replace(wall, zero_ns=wall.zero_ns + round(given.offset_s * _S))
    return Part(
        given.name, given.kind, given.capture, wall, work, is_stated=True, begin_s=given.offset_s
    )


def _on_clock(part: Part, placement: Placement) -> Part:
    first_ns, last_ns = (t + placement.offset_ns for t in part.work.span_ns)
    return replace(
        part,
        capture=shifted(part.capture, placement.offset_ns),
        work=replace(part.work, span_ns=(first_ns, last_ns)),
    )


def _events(
    parts: Sequence[Part], sentences: Sequence[str], engines: Engines, subject: Subject
) -> tuple[Event, ...]:
    teller = cap_teller(parts)
    told = (
        e
        for p in parts
        if p.name not in engines.twins
        for e in p.capture.events
        if (p is teller or not infers_cap(e)) and not _asks_a_cpu_for_kernels(e, subject)
    )
    found = [e for e in told if not is_answered(e, engines.names, subject)]
    found.sort(key=attrgetter("t_ns"))
    first_ns = found[0].t_ns if found else 0
    said = (Event(first_ns, "check", None, {"sentence": sentence}) for sentence in sentences)
    return (*said, *found)


def _asks_a_cpu_for_kernels(event: Event, subject: Subject) -> bool:
    is_cpu = subject.device is not None and subject.device.is_cpu
    return is_cpu and event.data.get("about") == "kernels"


def _own_steps(parts: Sequence[Part]) -> tuple[Step, ...]:
    """Return the steps that are taken, if another source than a trace tells them."""
    first = next((p for p in parts if p.capture.steps), None)
    return first.capture.steps if first is not None and "trace" not in first.capture.meta else ()


def _sources(parts: Sequence[Part], placements: Sequence[Placement]) -> tuple[Source, ...]:
    ids = count()
    offsets = [(0, 0), *((p.offset_ns, p.error_ns) for p in placements)]
    return tuple(
        source._replace(id=next(ids), offset_ns=source.offset_ns + ns, offset_error_ns=error_ns)
        for part, (ns, error_ns) in zip(parts, offsets, strict=True)
        for source in part.capture.sources
    )


def _meta(parts: Sequence[Part]) -> dict[str, Any]:
    """Keep what each source alone tells; the first one's word where several do."""
    return {k: v for part in reversed(parts) for k, v in part.capture.meta.items()}


def _joined(parts: Sequence[Part], placements: Sequence[Placement]) -> list[dict[str, Any]]:
    return [
        {
            "source": part.name,
            "offset_ns": p.offset_ns,
            "offset_error_ns": p.error_ns,
            "residual_ns": p.residual_ns,
        }
        for part, p in zip(parts, placements, strict=True)
    ]
