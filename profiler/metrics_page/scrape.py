"""One page of /metrics, reduced to the quantities that engines told at that moment."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from stallscope.profiler.metrics_page.engines import (
    Known,
    engine_of,
    may_matter,
    quantities_of,
)
from stallscope.profiler.metrics_page.exposition import Sample, no_figure, sample_of
from stallscope.profiler.metrics_page.table import Values

# Labels that tell engines apart, replicas first; of what a federated page adds, the instance.
IDENTITY = ("instance", "pod", "model_name", "model", "engine", "dp_rank")
# Ranks of one engine: each tells the same, so the highest stands for all.
_SHARDS = ("tp_rank", "pp_rank", "moe_ep_rank", "pid")
DEVICES = "DCGM_FI_"
START = "process_start_time_seconds"
CPU = "process_cpu_seconds_total"
OF_PROCESS = (START, CPU)


class Page(NamedTuple):
    """One whole page: when it was scraped, on a monotonic clock and since 1970, and its text."""

    t_ns: int
    unix_ns: int | None
    text: str


class Identity(NamedTuple):
    """An engine as its labels name it; labels are those of IDENTITY that stand on its series."""

    engine: str
    labels: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Scrape:
    """What a page told: `values` by engine and quantity, `facts` that do not change.

    `starts` are start times of processes by instance ("" on a page of one), `cpu` the seconds of
    CPU time that they used, `unix_ns` when its samples were taken; `is_cut` says that the last line
    breaks off. `devices` are the lines of dcgm-exporter on the same page; `repeated` counts series
    that came twice, which the format forbids: of these the last counts. `no_figures` are the values
    that no number is made of, by metric.
    """

    t_ns: int
    unix_ns: int | None
    values: Mapping[Identity, Mapping[str, float]]
    facts: Mapping[Identity, Mapping[str, str]]
    starts: Mapping[str, float] = field(default_factory=dict)
    is_cut: bool = False
    devices: tuple[str, ...] = ()
    cpu: Mapping[str, float] = field(default_factory=dict)
    repeated: int = 0
    no_figures: Mapping[str, str] = field(default_factory=dict)


def scrape_of(page: Page) -> Scrape:
    """Reduce a page to some dozens of numbers; keep these, not the page, of a long watch."""
    lines = page.text.splitlines(keepends=True)
    is_cut = bool(lines) and is_broken_off(lines[-1])
    return scrape_lines(lines[:-1] if is_cut else lines, page.t_ns, page.unix_ns, is_cut=is_cut)


def is_broken_off(last: str) -> bool:
    """Tell whether a last line was cut: it has no end, and its number may lack digits."""
    return not last.endswith(("\n", "\r")) and not last.startswith("# EOF")


def scrape_lines(
    lines: Iterable[str], t_ns: int, unix_ns: int | None, *, is_cut: bool = False
) -> Scrape:
    """Reduce the whole lines of one page."""
    parts = _Parts()
    for line in lines:
        if may_matter(line) or line.startswith(OF_PROCESS):
            parts.take(line)
        elif line.startswith(DEVICES):
            parts.devices.append(line)
    when = parts.unix_ns if unix_ns is None else unix_ns
    devices = tuple(parts.devices)
    return Scrape(
        *(t_ns, when, parts.values(), parts.facts, parts.starts, is_cut, devices, parts.cpu),
        repeated=parts.repeated,
        no_figures=parts.no_figures,
    )


def scrape_samples(samples: Iterable[Sample], t_ns: int, unix_ns: int) -> Scrape:
    """Reduce what one server told at one time, of any age: unlike lines it is whole."""
    parts = _Parts()
    for sample in samples:
        parts.take_sample(sample)
    return Scrape(t_ns, unix_ns, parts.values(), parts.facts, parts.starts, cpu=parts.cpu)


Shards = dict[tuple[str, ...], float]


class _Parts:
    """The samples of a page, gathered line by line."""

    def __init__(self) -> None:
        self._found: dict[Identity, dict[tuple[str, int], Shards]] = {}
        self._finish: dict[Identity, Callable[[Values], None]] = {}
        self.facts: dict[Identity, dict[str, str]] = {}
        self.starts: dict[str, float] = {}
        self.cpu: dict[str, float] = {}
        self.devices: list[str] = []
        self.unix_ns: int | None = None
        self.repeated = 0
        self.no_figures: dict[str, str] = {}
        self._told: dict[tuple[str, frozenset[tuple[str, str]]], float] = {}

    def take(self, line: str) -> None:
        sample = sample_of(line)
        if sample is not None:
            self.take_sample(sample)
        elif (wrong := no_figure(line)) is not None and quantities_of(wrong[0]):
            self.no_figures[wrong[0]] = wrong[1]

    def take_sample(self, sample: Sample) -> None:
        found = engine_of(sample)
        if found is not None:
            self._put(sample, *found)
        elif sample.name == START:
            self.starts[sample.labels.get("instance", "")] = sample.value
        elif sample.name == CPU:
            self.cpu[sample.labels.get("instance", "")] = sample.value

    def _put(self, sample: Sample, known: Known, metric: str) -> None:
        labels = sample.labels
        told = tuple((name, labels[name]) for name in IDENTITY if labels.get(name))
        identity = Identity(known.table.engine, told)
        self._finish[identity] = known.table.finish
        shard = tuple(labels.get(name, "") for name in _SHARDS)
        series = sample.name, frozenset(labels.items())
        before = self._told.get(series)
        self.repeated += before is not None
        self._told[series] = sample.value
        for quantity, rank, label, value in known.picks.get(metric, ()):
            if not label or labels.get(label) == value:
                places = self._found.setdefault(identity, {})
                shards = places.setdefault((quantity, rank), {})
                shards[shard] = shards.get(shard, 0.0) + sample.value - (before or 0.0)
        facts = self.facts.setdefault(identity, {})
        for fact, label in known.labels.get(metric, ()):
            if labels.get(label, "None") != "None":
                facts.setdefault(fact, labels[label])
        if sample.unix_ns is not None:
            self.unix_ns = max(self.unix_ns or 0, sample.unix_ns)

    def values(self) -> Mapping[Identity, Mapping[str, float]]:
        """Return each quantity from its best place, of the rank that tells most."""
        made: dict[Identity, Mapping[str, float]] = {}
        for identity, places in self._found.items():
            values: Values = {}
            for quantity, rank in sorted(places):
                values.setdefault(quantity, max(places[quantity, rank].values()))
            self._finish[identity](values)
            made[identity] = {k: v for k, v in values.items() if not k.startswith("_")}
        return made
