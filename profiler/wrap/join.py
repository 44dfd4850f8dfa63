"""One capture of a recorder's own record and the trace that nsys took of the same run."""

from __future__ import annotations

from dataclasses import replace

from stallscope.profiler.capture import Capture, Event, Source, Step
from stallscope.profiler.spec import Subject
from stallscope.profiler.trace.counted import with_counted_steps
from stallscope.profiler.trace.timeline import Trace
from stallscope.profiler.trace.to_capture import capture_of
from stallscope.profiler.wrap.agreement import agreement_sentences
from stallscope.profiler.wrap.alignment import (
    by_wall_clock,
    marked_by,
    recorded_spans,
    shifted,
    traced_spans,
)
from stallscope.profiler.wrap.compare import compare
from stallscope.profiler.wrap.handshake import Announced


def join_trace(own: Capture, trace: Trace, announced: Announced, *, nsys: str) -> Capture:
    """Add to a run's own record what nsys saw of it, on the record's clock.

    The record's steps, requests and subject stand; the trace adds kernels, device samples and
    events. `nsys` is the version that traced. Where the trace holds every recorded step as an NVTX
    range, kernels are told by these; else by the times of the steps.
    """
    clock = by_wall_clock(announced, trace)
    agreement = compare(
        recorded_spans(own.steps), traced_spans(trace), guess=clock, window_ns=trace.window_ns
    )
    offset = agreement.offset or clock
    sentences = agreement_sentences(agreement, clock, nsys=nsys, nvtx=announced.nvtx)
    begun_ns = min((step.start_ns for step in own.steps), default=announced.clock_ns)
    said = [Event(begun_ns, "check", None, {"sentence": sentence}) for sentence in sentences]
    record = replace(own, sources=(_source_of(announced), *own.sources))
    if offset is None:
        return replace(record, events=_in_order([*own.events, *said]))
    laid = shifted(trace, -offset.ns)
    if not agreement.is_whole:
        laid = marked_by(laid, _traced_steps(own, laid))
    traced = _seen(laid, own.subject)
    events = [e if e.t_ns else e._replace(t_ns=begun_ns) for e in traced.events]
    sources = [
        s._replace(id=s.id + 1, clock="nsys", offset_ns=-offset.ns, offset_error_ns=offset.error_ns)
        for s in traced.sources
    ]
    return replace(
        record,
        subject=replace(own.subject, device=own.subject.device or traced.subject.device),
        kernels=(*own.kernels, *traced.kernels),
        device_samples=tuple(
            sorted((*own.device_samples, *traced.device_samples), key=lambda s: s.t_ns)
        ),
        events=_in_order([*own.events, *said, *events]),
        sources=(*record.sources, *sources),
        meta={**with_counted_steps(traced.meta, own.steps), **own.meta},
    )


def _seen(trace: Trace, subject: Subject) -> Capture:
    """Reduce the trace, but for what its comparison with the record says already.

    A run on a CPU has no kernels to trace; that it has none is no news.
    """
    said = {"nvtx_lost"}
    is_cpu = subject.device is not None and subject.device.is_cpu
    if not is_cpu or len(trace.kernels) or len(trace.copies) or trace.series:
        findings = tuple(f for f in trace.findings if f.what not in said)
        return capture_of([replace(trace, findings=findings)])
    said |= {"no_kernel_table", "no_kernels"}
    sentences = [f"{f.reason}. {f.how}".strip() for f in trace.findings if f.what not in said]
    return Capture(
        events=tuple(Event(0, "check", None, {"sentence": text}) for text in sentences),
        sources=(Source(0, trace.kind, trace.path, "trace", 0, 0),),
    )


def _traced_steps(own: Capture, trace: Trace) -> list[Step]:
    """Return the steps that lie whole in the window that was traced, where it is known."""
    if trace.window_ns is None:
        return list(own.steps)
    first_ns, last_ns = trace.window_ns
    return [s for s in own.steps if s.start_ns >= first_ns and s.end_ns <= last_ns]


def _source_of(announced: Announced) -> Source:
    return Source(0, "stallscope", str(announced.capture), "monotonic", 0, 0)


def _in_order(events: list[Event]) -> tuple[Event, ...]:
    return tuple(sorted(events, key=lambda event: event.t_ns))
