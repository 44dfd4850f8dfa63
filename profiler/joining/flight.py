"""How many requests a source saw in flight, and when that number passed a level."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby, pairwise

from stallscope.profiler.capture import EngineSample, Request
from stallscope.profiler.joining.edges import Between, Stretch, Work

Flight = tuple[tuple[int, float], ...]
_LEVELS = (0.25, 0.5, 0.75)
_LEAST = 4.0  # in flight: below, a level is passed with every request


def of_gauges(samples: Iterable[EngineSample]) -> Flight:
    """Return all engines' running and waiting requests, at each time that one of them spoke."""
    last: dict[tuple[str, str], float] = {}
    found = []
    named = (s for s in samples if s.name in ("running", "waiting"))
    for t_ns, group in groupby(sorted(named, key=lambda s: s.t_ns), key=lambda s: s.t_ns):
        last |= {(s.engine, s.name): s.value for s in group}
        found.append((t_ns, sum(last.values())))
    return tuple(found)


def of_requests(requests: Iterable[Request]) -> Flight:
    """Return the requests in flight whenever one came or ended."""
    changes: dict[int, int] = {}
    for request in requests:
        if request.end_ns is not None:
            changes[request.arrival_ns] = changes.get(request.arrival_ns, 0) + 1
            changes[request.end_ns] = changes.get(request.end_ns, 0) - 1
    found, flight = [(t_ns, 0.0) for t_ns in sorted(changes)[:1]], 0
    for t_ns, change in sorted(changes.items()):
        flight += change
        found.append((t_ns, float(flight)))
    return tuple(found)


def read_at_end(flight: Flight) -> Flight:
    """Return numbers that were read at the end of the time they are laid over, at that end."""
    return tuple((after_ns, value) for (_, value), (after_ns, _) in pairwise(flight))


def levels_of(first: Work, second: Work) -> tuple[float, ...]:
    """Return levels that the requests in flight of both may pass."""
    if not first.flight or not second.flight:
        return ()
    top = min(max(value for _, value in work.flight) for work in (first, second))
    return tuple(share * top for share in _LEVELS) if top >= _LEAST else ()


def above(work: Work, level: float) -> Iterator[Stretch]:
    """Yield the stretches in which so many or more were in flight."""
    begin: Between | None = None
    was_above = bool(work.flight) and work.flight[0][1] >= level
    for (before_ns, _), (t_ns, value) in pairwise(work.flight):
        is_above = value >= level
        if is_above == was_above:
            continue
        moment = Between(before_ns if work.interval_ns else t_ns, t_ns + work.slack_ns)
        if is_above:
            begin = moment
        else:
            yield Stretch(begin, moment)
        was_above = is_above
    if was_above:
        yield Stretch(begin, None)
