"""A cap that the user states beside what running requests show of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from stallscope.analyzers.load.room import AT_CAP
from stallscope.analyzers.stated.observed import most_running
from stallscope.profiler.capture import Capture, Event

_MISSING = "the cap on running requests"  # as readers call what they could not see


def why_no_such_cap(capture: Capture, value: int) -> str | None:
    """Say what shows a cap below the stated one, where nothing but that can have held the queue."""
    event, seen = _inferred(capture), capture.subject.max_num_seqs
    if event is None or not event.data.get("proven") or seen is None or seen >= AT_CAP * value:
        return None
    return f"{value} was given, and {_how(event) or f'running never passed {seen}'}"


def with_stated_cap(capture: Capture) -> Capture:
    """Return a capture whose cap is the user's word, and say so where requests waited.

    What a source says of a cap that it does not state goes.
    """
    kept = tuple(e for e in capture.events if not _is_about_cap(e))
    said = (Event(0, "check", None, {"sentence": " ".join(s)}) for s in _words(capture))
    return dataclasses.replace(capture, events=(*said, *kept))


def _words(capture: Capture) -> Iterator[tuple[str, ...]]:
    waited = max((s.value for s in capture.engine_samples if s.name == "waiting"), default=0.0)
    cap, ran = capture.subject.max_num_seqs, most_running(capture)
    if cap is None or not waited:
        return
    said = f"The cap of {cap} is the word of --max-num-seqs: nothing recorded states it."
    reached = f"At most {ran:,.0f} ran at once while up to {waited:,.0f} waited"
    if ran < AT_CAP * cap:
        reached += ", so that by this word no request waited for a slot"
    event = _inferred(capture)
    how = None if event is None else _how(event)
    other = () if how is None else (f"Without it the cap would be taken from what ran: {how}.",)
    yield said, f"{reached}.", *other


def _inferred(capture: Capture) -> Event | None:
    return next((e for e in capture.events if e.data.get("infers") == "max_num_seqs"), None)


def _how(event: Event) -> str | None:
    seen = event.data.get("seen")
    return seen if isinstance(seen, str) else None


def _is_about_cap(event: Event) -> bool:
    is_missing = event.kind == "not_observable" and event.data.get("what") == _MISSING
    return is_missing or event.data.get("infers") == "max_num_seqs"
