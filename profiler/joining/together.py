"""Several sources of one run: those with times on one clock, what tells of one moment beside."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.joining.beside import laid_beside
from stallscope.profiler.joining.client import is_of_client
from stallscope.profiler.joining.join import Given, join
from stallscope.profiler.joining.parts import ORDER
from stallscope.profiler.joining.work import work_of
from stallscope.profiler.trial import trials_from_json
from stallscope.profiler.wall_clock import wall_clock


def together(given: Sequence[Given]) -> Capture:
    """Join sources of one run. Raises InputError where nothing says how their clocks stand."""
    ordered = sorted(given, key=lambda g: ORDER.index(g.kind))
    timed = [g for g in ordered if g.offset_s is not None or lasts(g.capture)] or ordered[:1]
    main = _on_one_clock(timed) if len(timed) > 1 else timed[0].capture
    return laid_beside(main, [g.capture for g in ordered if g not in timed])


def lasts(capture: Capture) -> bool:
    """Tell whether a capture is of a time, and not of one moment or of none."""
    work = work_of(capture)
    return work is not None and work.span_ns[0] < work.span_ns[1]


def _on_one_clock(timed: Sequence[Given]) -> Capture:
    try:
        return join(timed)
    except InputError:
        clients = [g for g in timed if _is_undated_client(g)]
        others = [g for g in timed if g not in clients]
        if len(clients) != 1 or not any(g.capture.engine_samples for g in others):
            raise
    main = join(others) if len(others) > 1 else others[0].capture
    return _with_latencies(main, clients[0])


def _is_undated_client(given: Given) -> bool:
    """Tell whether these are results of one load, which do not say when it was sent."""
    capture = given.capture
    if given.offset_s is not None or capture.requests or wall_clock(capture) is not None:
        return False
    return is_of_client(capture) and len(trials_from_json(capture.meta["benchmark"]["trials"])) == 1


def _with_latencies(main: Capture, client: Given) -> Capture:
    """Add what a client felt over the whole of its run, as if printed into the server's log."""
    sentence = (
        f"When the load of {client.name} was sent is not said: latencies are of its whole run, "
        "and what the server tells is taken to be of that run."
    )
    ids = count()
    told = client.capture.meta["benchmark"]
    return replace(
        main,
        events=(Event(0, "check", None, {"sentence": sentence}), *main.events),
        sources=tuple(s._replace(id=next(ids)) for s in (*main.sources, *client.capture.sources)),
        meta={**main.meta, "printed_benchmark": {"trials": told["trials"], "judged": 0}},
    )
