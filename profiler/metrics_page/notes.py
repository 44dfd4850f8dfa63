"""What must be said of pages besides their numbers, and what they do not tell."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stallscope.profiler.capture import EngineSample, Event
from stallscope.profiler.metrics_page.no_figures import Refused
from stallscope.profiler.metrics_page.scrape import Scrape
from stallscope.profiler.metrics_page.times import jumps_back

_ONE = (
    "One page tells gauges of one instant: what changes, and every rate, needs a series of pages."
)
CUT = "A page breaks off in the middle of a line; what stands before it was read."
_OWN = "scrape the engine's own /metrics"
_READ_AGAIN = "look into why the server writes that; its log tells the same gauges"
_SERIES = "scrape the page every second while the load runs: stallscope attach URL"


def notes(scrapes: Sequence[Scrape], *, is_timed: bool) -> Iterator[Event]:
    """Yield sentences on how far the pages can be trusted."""
    if len(scrapes) == 1:
        yield _note(_ONE)
    if any(scrape.is_cut for scrape in scrapes):
        yield _note(CUT)
    twice = [s.repeated for s in scrapes if s.repeated]
    if twice:
        yield _note(
            f"{max(twice)} series stand twice on a page ({len(twice)} of {len(scrapes)} pages), "
            "which the format forbids; of these the last one is taken."
        )
    if jumps_back(scrapes):
        yield _note("The clock of the pages jumps back; there, time goes on by a usual interval.")
    if not is_timed and len(scrapes) > 1:
        yield _note("The pages have no time: they are taken to be equally far apart.")


def _note(sentence: str) -> Event:
    return Event(0, "check", None, {"sentence": sentence})


def without_dead_kv(samples: Sequence[EngineSample]) -> list[EngineSample]:
    """Leave out KV use that reads zero throughout, of engines in which requests ran.

    A running request holds at least one block; versions that renamed the gauge leave zeros behind.
    """
    ran = {s.engine for s in samples if s.name == "running" and s.value > 0}
    used = {s.engine for s in samples if s.name == "kv_used_fraction" and s.value > 0}
    dead = ran - used
    return [s for s in samples if s.name != "kv_used_fraction" or s.engine not in dead]


def unseen(
    samples: Sequence[EngineSample],
    told: Sequence[EngineSample],
    cap: int | None,
    refused: Refused,
) -> Iterator[Event]:
    """Say what the pages do not tell; `told` still has the gauges that were not believed."""
    names = {s.name for s in samples}
    if not {"waiting", "running"} <= names:
        what = "requests that wait and run"
        seen = {s.name for s in told}
        absent = [n for n in ("waiting", "running") if n not in seen]
        wrong = refused.reason(absent)
        reason = "what the page says cannot be" if not absent else _no_gauge(absent)
        how = _OWN if wrong is None else _READ_AGAIN
        yield _missing(what, wrong or reason, how)
    elif "kv_used_fraction" not in names:
        read = [s.value for s in told if s.name == "kv_used_fraction"]
        reason = "the page has no gauge of it" if not read else "it reads zero while requests run"
        reason = "what the page says cannot be" if any(read) else reason
        reason = refused.reason(["kv_used_fraction"]) or reason
        yield _missing("KV cache use", reason, "read the server's log, or a version that tells it")
    if "running" in names and cap is None:
        how = "add --max-num-seqs, as the server was started with"
        yield _missing("the cap on running requests", "the page does not state it", how)
    if len({s.t_ns for s in samples}) == 1:
        yield _missing("rates of tokens and requests", "there is one page", _SERIES)


def _no_gauge(absent: Sequence[str]) -> str:
    if len(absent) > 1:
        return "the page has no gauge of them"
    return f"the page has no gauge of those that {'wait' if absent == ['waiting'] else 'run'}"


def _missing(what: str, reason: str, how: str) -> Event:
    return Event(0, "not_observable", None, {"what": what, "reason": reason, "how": how})
