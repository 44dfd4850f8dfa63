"""A capture from scraped pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, EngineSample, Event, Source
from stallscope.profiler.metrics_page.counters import Counters, is_counter, restarts
from stallscope.profiler.metrics_page.engine_names import engine_names
from stallscope.profiler.metrics_page.engines import ENGINES
from stallscope.profiler.metrics_page.foreign import READ, what_it_holds
from stallscope.profiler.metrics_page.notes import notes, unseen, without_dead_kv
from stallscope.profiler.metrics_page.scrape import Identity, Page, Scrape, scrape_of
from stallscope.profiler.metrics_page.times import jumps_back
from stallscope.profiler.sequence_cap import decoding_cap, seen_cap
from stallscope.profiler.spec import Subject

KIND = "metrics page"
_KV_DTYPES = {"fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "bfloat16": "bf16"}


def capture_of(pages: Sequence[Page], source: str) -> Capture:
    """Put whole pages into a capture; times stay on their clock. Those of a long watch are better
    reduced one by one (`scrape_of`) and given to `capture_of_scrapes`.

    Raises InputError where no page holds a metric of an engine, saying what was found.
    """
    scrapes = [scrape_of(page) for page in pages]
    if not any(scrape.values for scrape in scrapes):
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
    told = [scrape for scrape in scrapes if scrape.values]
    if not told:
        raise InputError(f"{source}: no page holds a metric of an engine; {READ}")
    names = engine_names({i for scrape in told for i in scrape.values})
    settings = _settings(told)
    all_samples, found_restarts = _samples(told, names)
    samples = without_dead_kv(all_samples)
    cap, how_seen = _cap(settings, samples, names)
    events = [
        *notes(scrapes, is_timed=is_timed),
        *(Event(0, "check", None, {"sentence": s}) for s in (*said, how_seen) if s),
        *found_restarts,
        *unseen(samples, all_samples, cap),
    ]
    first = told[0]
    return Capture(
        subject=_subject(settings, names, cap),
        engine_samples=tuple(samples),
        events=tuple(sorted(events, key=attrgetter("t_ns"))),
        sources=(Source(0, KIND, source, "unix time" if first.unix_ns else "none", 0, 0),),
        meta={
            "ended": {},
            "metrics_page": settings,
            "clock": _clock(told),
        },
    )


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
        for name, (instance, values) in sorted(_by_name(scrape, names).items()):
            counters = followed.setdefault(name, Counters(name))
            samples += (
                EngineSample(scrape.t_ns, name, quantity, value)
                for quantity, value in values.items()
                if not is_counter(quantity) and quantity not in _SETTINGS
            )
            samples += counters.take(scrape.t_ns, values, scrape.starts.get(instance))
    return samples, list(restarts(list(followed.values())))


_SETTINGS = frozenset(name for known in ENGINES for name in known.table.settings)


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


def _settings(scrapes: Sequence[Scrape]) -> dict[str, float | str]:
    """Gather facts, the last statement of each; what engines state differently is left out."""
    by_fact: dict[str, dict[Identity, float | str]] = {}
    for scrape in scrapes:
        for identity, facts in scrape.facts.items():
            model = dict(identity.labels).get("model_name")
            for fact, value in {**facts, **({"model": model} if model else {})}.items():
                by_fact.setdefault(fact, {})[identity] = _number(value)
        for identity, values in scrape.values.items():
            for fact in _SETTINGS & values.keys():
                by_fact.setdefault(fact, {})[identity] = values[fact]
    agreed = {fact: set(stated.values()) for fact, stated in by_fact.items()}
    return {fact: values.pop() for fact, values in agreed.items() if len(values) == 1}


def _number(text: str) -> float | str:
    try:
        return float(text) if text[:1].isdigit() and len(text) < 20 else text
    except ValueError:
        return text


def _cap(
    settings: Mapping[str, float | str],
    samples: Sequence[EngineSample],
    names: Mapping[Identity, str],
) -> tuple[int | None, str | None]:
    stated = _whole(settings, "max_num_seqs")
    if stated is not None:
        return stated, None
    engines = {identity.engine for identity in names}
    seen = seen_cap(samples, engines.pop(), source="page", moment="page")
    seen = seen or decoding_cap(samples, "page")
    return (None, None) if seen is None or engines else (seen.running, seen.sentence)


def _whole(settings: Mapping[str, float | str], name: str) -> int | None:
    value = settings.get(name)
    return round(value) if isinstance(value, float) and 0 < value < 2**53 else None


def _subject(
    settings: Mapping[str, float | str], names: Mapping[Identity, str], cap: int | None
) -> Subject:
    engines = {identity.engine for identity in names}
    model = settings.get("model")
    return Subject(
        kv_dtype=_KV_DTYPES.get(str(settings.get("kv_dtype", ""))),
        engine=engines.pop() if len(engines) == 1 else None,
        workload=f"serving {model}" if model else None,
        max_num_seqs=cap,
        max_num_batched_tokens=_whole(settings, "max_num_batched_tokens"),
        kv_budget_bytes=_whole(settings, "kv_bytes"),
        block_size=_whole(settings, "block_size"),
    )
