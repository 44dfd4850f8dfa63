"""Several servers behind one address, of which each page is another's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby

from stallscope.profiler.metrics_page.scrape import Identity, Scrape


def told_apart(scrapes: Sequence[Scrape]) -> tuple[Sequence[Scrape], str | None]:
    """Give each server its own engines where start times of processes come back, and say so.

    A restart goes from one start time to another and never back.
    """
    starts = [scrape.starts.get("") for scrape in scrapes]
    runs = [start for start, _ in groupby(round(s) for s in starts if s is not None)]
    servers = {start: str(n) for n, start in enumerate(dict.fromkeys(runs))}
    if len(runs) == len(servers):
        return scrapes, None
    apart = [
        scrape if start is None else _of_server(scrape, servers[round(start)])
        for scrape, start in zip(scrapes, starts, strict=True)
    ]
    return apart, (
        f"The address leads to {len(servers)} servers in turn, by their start times: each is "
        "judged by the pages that it answered itself; scrape each by its own address."
    )


def _of_server(scrape: Scrape, server: str) -> Scrape:
    def named(identity: Identity) -> Identity:
        return identity._replace(labels=(("server", server), *identity.labels))

    return replace(
        scrape,
        values={named(i): values for i, values in scrape.values.items()},
        facts={named(i): facts for i, facts in scrape.facts.items()},
    )
