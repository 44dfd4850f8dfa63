"""Lay what tells of one moment beside what tells of a time: its facts hold, its load does not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, replace
from itertools import count
from typing import Any

from stallscope.profiler.capture import Capture, DeviceSample, Event
from stallscope.profiler.spec import Subject

# The load of a benchmark that was sent at another time, or nobody knows when.
_OF_A_LOAD = frozenset({"workload", "concurrency", "rate_per_s"})
# What stays as it is while a server runs: engines take their memory at the start.
_STAYING = frozenset({"memory_used_bytes", "memory_total_bytes", "power_limit_mw"})


def laid_beside(main: Capture, others: Sequence[Capture]) -> Capture:
    """Return the main capture with what the others state and it does not."""
    for other in others:
        main = replace(
            main,
            subject=_subject(main.subject, other.subject, is_load="benchmark" in other.meta),
            device_samples=(*main.device_samples, *_staying(main, other)),
            events=(*main.events, *_said(other)),
            meta={**{k: v for k, v in other.meta.items() if k != "benchmark"}, **main.meta},
        )
    ids = count()
    sources = [s for capture in (main, *others) for s in capture.sources]
    return replace(main, sources=tuple(s._replace(id=next(ids)) for s in sources))


def _subject(main: Subject, other: Subject, *, is_load: bool) -> Subject:
    missing: dict[str, Any] = {
        field.name: getattr(other, field.name)
        for field in fields(Subject)
        if getattr(main, field.name) is None and not (is_load and field.name in _OF_A_LOAD)
    }
    return replace(main, **missing, num_devices=max(main.num_devices, other.num_devices))


def _staying(main: Capture, other: Capture) -> Iterator[DeviceSample]:
    """Yield what does not change, at the end of the time that the main capture tells of."""
    end_ns = max((s.t_ns for s in main.engine_samples), default=0)
    end_ns = max(end_ns, max((s.end_ns for s in main.steps), default=0))
    for sample in other.device_samples:
        if sample.name in _STAYING and sample.device != "host":
            yield sample._replace(t_ns=end_ns)


def _said(other: Capture) -> Iterator[Event]:
    """Yield what was seen to fail, and the sentence that says what of the rest is used."""
    yield from (e for e in other.events if e.kind in ("oom", "error"))
    what = ", ".join(sorted({s.kind for s in other.sources})) or "what was pasted beside it"
    sentence = f"Of {what} only what stays the same is used (settings, device, memory): it is "
    yield Event(
        0, "check", None, {"sentence": f"{sentence}of one moment, or does not say when it was."}
    )
