"""Every replica that a Prometheus server knows, with its scrapes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from stallscope.errors import InputError
from stallscope.profiler.metrics_page.scrape import Scrape
from stallscope.profiler.prometheus.api import Api, Series
from stallscope.profiler.prometheus.replicas import gathered, replica_names
from stallscope.profiler.prometheus.selector import engine_selectors, selector, start_selector
from stallscope.profiler.prometheus.window import LOOKED_AT_S, Window, interval_of, window

_MOST_NAMES = 25  # in one selector: some proxies take no URL of 8 kB


@dataclass(frozen=True, slots=True)
class Fleet:
    """The replicas by name; they were read in `window`, and scraped every `interval_s`."""

    replicas: Mapping[str, tuple[Scrape, ...]]
    window: Window
    interval_s: float

    def silent_s(self) -> Mapping[str, float]:
        """Return for how long each replica had told nothing at the window's last reading."""
        last_s = self.window.times()[-1]
        return {
            n: last_s - (scrapes[-1].unix_ns or 0) * 1e-9 for n, scrapes in self.replicas.items()
        }


def read_fleet(api: Api, inner: str, *, since_s: float, end_s: float) -> Fleet:
    """Read every engine's series within the label matchers `inner`, over the last `since_s`.

    Raises InputError where there is none, or Prometheus refuses.
    """
    start_s = end_s - since_s
    known = [
        labels for match in engine_selectors(inner) for labels in api.series(match, start_s, end_s)
    ]
    if not known:
        raise InputError(f"{api.shown}: {_nothing(api, inner, start_s, end_s)}")
    names = sorted({labels["__name__"] for labels in known})
    interval_s = _interval(api, inner, names, end_s)
    wanted = window(end_s, since_s, series=len(known), interval_s=interval_s)
    found = gathered(_read(api, inner, names, wanted, len(known)))
    called = replica_names(known)
    replicas = {
        called[key]: tuple(s for s in one.scrapes(start_s) if s.values)
        for key, one in sorted(found.items())
        if key in called
    }
    return Fleet({n: scrapes for n, scrapes in replicas.items() if scrapes}, wanted, interval_s)


def _nothing(api: Api, inner: str, start_s: float, end_s: float) -> str:
    where = f"within {{{inner}}} " if inner else ""
    text = f"no series of an inference engine {where}in that time"
    others = {
        labels.get("job", "")
        for match in (engine_selectors("") if inner else ())
        for labels in api.series(match, start_s, end_s)
    }
    jobs = ", ".join(sorted(filter(None, others))[:10])
    return f"{text}; jobs that have some: {jobs}" if jobs else f"{text}; is the engine scraped?"


def _interval(api: Api, inner: str, names: list[str], end_s: float) -> float:
    """Learn how often Prometheus scrapes from the series of one name."""
    return interval_of(api.raw(selector(inner, names[:1]), end_s, LOOKED_AT_S))


def _read(
    api: Api, inner: str, names: list[str], wanted: Window, series: int
) -> Iterator[list[Series]]:
    groups = [names[i : i + _MOST_NAMES] for i in range(0, len(names), _MOST_NAMES)]
    for group in [*(selector(inner, g) for g in groups), start_selector(inner)]:
        for piece in wanted.pieces(series):
            yield api.range(group, start_s=piece.start_s, end_s=piece.end_s, step_s=piece.step_s)
