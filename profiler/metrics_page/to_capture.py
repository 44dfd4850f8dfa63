"""A capture from scraped pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import attrgetter

from stallscope.errors import InputError
from stallscope.profiler.capture import FRONTEND_CPU, Capture, EngineSample, Event, Source
from stallscope.profiler.metrics_page.behind import told_apart
from stallscope.profiler.metrics_page.counters import Counters, is_counter, restarts
from stallscope.profiler.metrics_page.devices import of_devices_alone, with_devices
from stallscope.profiler.metrics_page.engine_names import engine_names
from stallscope.profiler.metrics_page.foreign import READ, what_it_holds
from stallscope.profiler.metrics_page.means import means_of_life
from stallscope.profiler.metrics_page.no_figures import refused
from stallscope.profiler.metrics_page.notes import notes, unseen, without_dead_kv
from stallscope.profiler.metrics_page.plausible import plausible
from stallscope.profiler.metrics_page.scrape import Identity, Page, Scrape, scrape_of
from stallscope.profiler.metrics_page.standstill import standstill
from stallscope.profiler.metrics_page.subject import SETTINGS, cap_of, settings_of, subject_of
from stallscope.profiler.metrics_page.times import jumps_back

KIND = "metrics page"


def capture_of(pages: Sequence[Page], source: str) -> Capture:
    """Put whole pages into a capture; times stay on their clock. Those of a long watch are better
    reduced one by one (`scrape_of`) and given to `capture_of_scrapes`.

    Raises InputError where no page holds a metric of an engine, saying what was found.
    """
    scrapes = [scrape_of(page) for page in pages]
    if not any(scrape.values or scrape.devices for scrape in scrapes):
        text = next((page.text for page in pages if page.text.strip()), "")
        raise InputError(f"{source}: {what_it_holds(text)}; {READ}")
    return capture_of_scrapes(scrapes, source)


def capture_of_scrapes(
    scrapes: Sequence[Scrape], source: str, *, is_timed: bool = True, said: Sequence[str] = ()
) -> Capture:
    """Put scrapes, in order of time, into a capture, with what else is `said` of them.

    Counters go on rising where a server began anew (event `restart`). The subject holds the caps
    that a page states, or that running requests show. Raises InputError where nothing is told.
    """
    told, servers = told_apart([scrape for scrape in scrapes if scrape.values])
    if not told and (alone := of_devices_alone(scrapes, source)) is not None:
        return alone
    if not told:
        raise InputError(f"{source}: no page holds a metric of an engine; {READ}")
    names = engine_names({i for scrape in told for i in scrape.values})
    engines = {identity.engine for identity in names}
    engine = engines.pop() if len(engines) == 1 else None
    settings = settings_of(told)
    read, found_restarts = _samples(told, names)
    all_samples, left_out = plausible(read)
    samples = without_dead_kv(all_samples)
    cap, how_seen = cap_of(settings, samples, engine)
    events = [
        *notes(scrapes, is_timed=is_timed),
        *_checks(*said, servers),
        *(() if how_seen is None else _checks(how_seen.sentence, **how_seen.facts())),
        *_checks(means_of_life(samples)),
        *found_restarts,
        *_checks(left_out, *refused(scrapes).sentences()),
        *(standstill(samples) if is_timed else ()),
        *unseen(samples, read, cap, refused(scrapes)),
    ]
    first = told[0]
    capture = Capture(
        subject=subject_of(settings, engine, cap),
        engine_samples=tuple(samples),
        events=tuple(sorted(events, key=attrgetter("t_ns"))),
        sources=(Source(0, KIND, source, "unix time" if first.unix_ns else "none", 0, 0),),
        meta={"ended": {}, "metrics_page": settings, "clock": _clock(told)},
    )
    return with_devices(capture, told, source)


def _checks(*sentences: str | None, **about: object) -> Iterator[Event]:
    """Yield sentences as checks; `infers` names the field of the subject that one is about."""
    return (Event(0, "check", None, {"sentence": s, **about}) for s in sentences if s)


def _clock(scrapes: Sequence[Scrape]) -> dict[str, int] | None:
    """Say which wall time the times stand for; one that was set back says nothing."""
    first = scrapes[0]
    if first.unix_ns is None or jumps_back(scrapes):
        return None
    return {"unix_ns": first.unix_ns, "t_ns": first.t_ns}


def _samples(
    scrapes: Sequence[Scrape], names: Mapping[Identity, str]
) -> tuple[list[EngineSample], list[Event]]:
    followed: dict[str, Counters] = {}
    samples: list[EngineSample] = []
    for scrape in scrapes:
        by_name = _by_name(scrape, names)
        _add_frontends(scrape, by_name, {names[i] for i in scrape.values if i.engine == "vllm"})
        for name, (instance, values) in sorted(by_name.items()):
            counters = followed.setdefault(name, Counters(name))
            samples += (
                EngineSample(scrape.t_ns, name, quantity, value)
                for quantity, value in values.items()
                if not is_counter(quantity) and quantity not in SETTINGS
            )
            samples += counters.take(scrape.t_ns, values, scrape.starts.get(instance))
    return samples, list(restarts(list(followed.values())))


def _add_frontends(
    scrape: Scrape, by_name: Mapping[str, tuple[str, dict[str, float]]], vllm: set[str]
) -> None:
    """Put the CPU time of the process that serves the page to the first engine behind it.

    vLLM's is its frontend: engines run in processes of their own.
    """
    seen: set[str] = set()
    for name in sorted(vllm & by_name.keys()):
        instance, values = by_name[name]
        if instance in scrape.cpu and instance not in seen:
            seen.add(instance)
            values[FRONTEND_CPU] = scrape.cpu[instance]


def _by_name(
    scrape: Scrape, names: Mapping[Identity, str]
) -> Mapping[str, tuple[str, dict[str, float]]]:
    """Join the identities of one name, and say on which instance it is."""
    found: dict[str, tuple[str, dict[str, float]]] = {}
    for identity, values in scrape.values.items():
        instance = dict(identity.labels).get("instance", "")
        _, joined = found.setdefault(names[identity], (instance, {}))
        for quantity, value in values.items():
            joined.setdefault(quantity, value)
    return found
