"""What other sources saw while a benchmark ran: a log may tell of hours before and after it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.joining.client import is_of_client, only_judged
from stallscope.profiler.joining.parts import Part
from stallscope.profiler.joining.words import apart
from stallscope.profiler.joining.work import span_of

_KEPT = frozenset({"check", "not_observable", "oom", "error"})  # they say something of all of it
_S = 1_000_000_000


def within_benchmark(parts: Sequence[Part]) -> tuple[tuple[Part, ...], tuple[str, ...]]:
    """Cut sources that stand on one clock to the time of the benchmark among them, and say so."""
    client = benchmark_of(parts)
    if client is None:
        return tuple(parts), ()
    window = client.work.span_ns
    capture, said = only_judged(client.capture)
    others = [p for p in parts if p is not client]
    sentences = (*said, *(s for p in others for s in _outside(p, client, window)))
    cut = (
        replace(p, capture=capture if p is client else _inside(p.capture, window)) for p in parts
    )
    return tuple(cut), sentences


def benchmark_of(parts: Sequence[Part]) -> Part | None:
    """Return the benchmark among sources, None where there is none."""
    return next((p for p in parts if is_of_client(p.capture)), None)


def run_span(parts: Sequence[Part]) -> tuple[int, int] | None:
    """Return from when to when the run lasted: the benchmark, else all but telemetry."""
    client = benchmark_of(parts)
    if client is not None:
        return client.work.span_ns
    runs = [replace(p.capture, device_samples=()) for p in parts]
    spans = [span for span in map(span_of, runs) if span is not None]
    return (min(a for a, _ in spans), max(b for _, b in spans)) if spans else None


def _outside(part: Part, client: Part, window: tuple[int, int]) -> Iterator[str]:
    own = span_of(replace(part.capture, device_samples=()))
    if own is None:
        return
    before, after = max(0, window[0] - own[0]), max(0, own[1] - window[1])
    if before + after >= _S:
        yield (
            f"Judged is the time of {client.name}: what {part.name} tells of {apart(before)} "
            f"before and {apart(after)} after it is left out."
        )
    missing = max(0, own[0] - window[0]) + max(0, window[1] - own[1])
    if missing >= (window[1] - window[0]) // 10:
        yield f"{part.name} tells nothing of {apart(missing)} of {client.name}."


def _inside(capture: Capture, window: tuple[int, int]) -> Capture:
    """Keep rows inside a window. What was last said before it holds at its begin."""
    first_ns, last_ns = window
    return replace(
        capture,
        steps=tuple(s for s in capture.steps if s.end_ns > first_ns and s.start_ns < last_ns),
        requests=tuple(r for r in capture.requests if first_ns <= r.arrival_ns <= last_ns),
        tokens=tuple(t for t in capture.tokens if first_ns <= t.t_ns <= last_ns),
        engine_samples=tuple(_samples(capture.engine_samples, first_ns, last_ns)),
        events=tuple(e for e in capture.events if e.kind in _KEPT or first_ns <= e.t_ns <= last_ns),
    )


def _samples(
    samples: Iterable[EngineSample], first_ns: int, last_ns: int
) -> Iterator[EngineSample]:
    held: dict[tuple[str, str], EngineSample] = {}
    inside = []
    for sample in sorted(samples, key=lambda s: s.t_ns):
        if sample.t_ns <= first_ns:
            held[sample.engine, sample.name] = sample
        elif sample.t_ns <= last_ns:
            inside.append(sample)
    yield from (sample._replace(t_ns=first_ns) for sample in held.values())
    yield from inside
