"""How many preemptions an event tells of: one, several, or the sum that an engine logs now and
then."""

from __future__ import annotations

from collections.abc import Iterable

from stallscope.profiler.capture import Event


def preempted(events: Iterable[Event]) -> int:
    """Count the preemptions that events tell of.

    SGLang's tell how many requests were put back at once (`count`). vLLM 0's come one in fifty with
    the sum so far (`total`): what it rose by counts, and the first one as itself, as the sum before
    may be of a time before the log. A sum that falls is a new server's.
    """
    number, totals = 0, dict[str, int]()
    for event in events:
        if event.kind != "preempt":
            continue
        total, engine = _whole(event, "total"), str(event.data.get("engine"))
        if total is None:
            number += _whole(event, "count") or 1
            continue
        before = totals.get(engine, total - 1)
        number += total - before if total > before else total
        totals[engine] = total
    return number


def is_least(events: Iterable[Event]) -> bool:
    """Tell whether more may have been preempted than events tell: those since the last sum."""
    return any(e.kind == "preempt" and _whole(e, "total") is not None for e in events)


def _whole(event: Event, name: str) -> int | None:
    value = event.data.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        return None
    return value
