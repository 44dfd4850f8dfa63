"""From series to replicas: what each one's page told at each time."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

from stallscope.profiler.metrics_page.exposition import Sample
from stallscope.profiler.metrics_page.scrape import Scrape, scrape_samples
from stallscope.profiler.prometheus.api import Labels, Series

# Labels that tell servers apart; Prometheus itself sets the first two.
_PLACES = ("job", "instance")
_POD = "pod"
_MS = 1_000_000
Key = tuple[str, ...]


def replica_names(found: Iterable[Labels]) -> Mapping[Key, str]:
    """Name the servers that series are of: by instance, with the job where that is not enough."""
    keys = sorted({key_of(labels) for labels in found})
    short = [key[1] or key[2] or key[0] or "all" for key in keys]
    return {
        key: name if short.count(name) == 1 else "/".join(part for part in key if part)
        for key, name in zip(keys, short, strict=True)
    }


def key_of(labels: Labels) -> Key:
    """Return what tells a server: job and instance; the pod where there is no instance."""
    job, instance = (labels.get(name, "") for name in _PLACES)
    return job, instance, "" if instance else labels.get(_POD, "")


class Gathered:
    """The samples of one replica, by time (ms since 1970)."""

    def __init__(self) -> None:
        self._by_ms: dict[int, list[Sample]] = {}

    def take(self, series: Series) -> None:
        """Take a series; values that are no finite number are left out."""
        name = series.labels.get("__name__", "")
        for time_s, text in series.points:
            value = float(text)
            if math.isfinite(value):
                sample = Sample(name, series.labels, value, None)
                self._by_ms.setdefault(round(time_s * 1000), []).append(sample)

    def scrapes(self, start_s: float) -> list[Scrape]:
        """Return what was told at each time, counted from `start_s`, in order."""
        zero_ms = round(start_s * 1000)
        return [
            scrape_samples(samples, (ms - zero_ms) * _MS, ms * _MS)
            for ms, samples in sorted(self._by_ms.items())
        ]


def gathered(pieces: Iterable[Sequence[Series]]) -> dict[Key, Gathered]:
    """Sort series, piece after piece in time, by replica."""
    found: dict[Key, Gathered] = {}
    for piece in pieces:
        for series in piece:
            found.setdefault(key_of(series.labels), Gathered()).take(series)
    return found
