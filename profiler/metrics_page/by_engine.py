"""Scrapes taken apart by engine: each data-parallel rank is a scheduler of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from stallscope.profiler.metrics_page.engine_names import engine_names
from stallscope.profiler.metrics_page.scrape import Identity, Scrape

_ALL = "all"  # what identities are called that tell of several engines


def by_engine(scrapes: Sequence[Scrape]) -> Mapping[str, tuple[Scrape, ...]]:
    """Return the scrapes of each engine that tells how many requests it runs, by its name."""
    names = engine_names({i for s in scrapes for i in (*s.values, *s.facts)})
    running = {
        names[identity]
        for scrape in scrapes
        for identity, values in scrape.values.items()
        if "running" in values
    }
    return {name: _of(name, scrapes, names) for name in sorted(running)}


def _of(name: str, scrapes: Sequence[Scrape], names: Mapping[Identity, str]) -> tuple[Scrape, ...]:
    parts = (
        replace(
            scrape,
            values={i: v for i, v in scrape.values.items() if names[i] == name},
            facts={i: f for i, f in scrape.facts.items() if names[i] in (name, _ALL)},
        )
        for scrape in scrapes
    )
    return tuple(part for part in parts if part.values)
