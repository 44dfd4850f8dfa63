"""What pages state of an engine's settings, and the cap that running requests show."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallscope.profiler.capture import EngineSample
from stallscope.profiler.metrics_page.engines import ENGINES
from stallscope.profiler.metrics_page.scrape import Identity, Scrape
from stallscope.profiler.sequence_cap import Cap, decoding_cap, seen_cap
from stallscope.profiler.spec import Subject

SETTINGS = frozenset(name for known in ENGINES for name in known.table.settings)
_KV_DTYPES = {"fp8": "fp8", "fp8_e4m3": "fp8", "fp8_e5m2": "fp8", "bfloat16": "bf16"}
Settings = Mapping[str, float | str]


def settings_of(scrapes: Sequence[Scrape]) -> dict[str, float | str]:
    """Gather facts, the last statement of each; what engines state differently is left out."""
    by_fact: dict[str, dict[Identity, float | str]] = {}
    for scrape in scrapes:
        for identity, facts in scrape.facts.items():
            model = dict(identity.labels).get("model_name")
            for fact, value in {**facts, **({"model": model} if model else {})}.items():
                by_fact.setdefault(fact, {})[identity] = _number(value)
        for identity, values in scrape.values.items():
            for fact in SETTINGS & values.keys():
                by_fact.setdefault(fact, {})[identity] = values[fact]
    agreed = {fact: set(stated.values()) for fact, stated in by_fact.items()}
    return {fact: values.pop() for fact, values in agreed.items() if len(values) == 1}


def _number(text: str) -> float | str:
    try:
        return float(text) if text[:1].isdigit() and len(text) < 20 else text
    except ValueError:
        return text


def cap_of(
    settings: Settings, samples: Sequence[EngineSample], engine: str | None
) -> tuple[int | None, Cap | None]:
    """Return the cap on running requests, and how it was seen where it is not stated."""
    stated = _whole(settings, "max_num_seqs")
    if stated is not None or engine is None:
        return stated, None
    seen = seen_cap(samples, engine, source="page", moment="page")
    seen = seen or decoding_cap(samples, "page")
    return (None, None) if seen is None else (seen.running, seen)


def subject_of(settings: Settings, engine: str | None, cap: int | None) -> Subject:
    """Return what the pages say of the subject."""
    model = settings.get("model")
    return Subject(
        kv_dtype=_KV_DTYPES.get(str(settings.get("kv_dtype", ""))),
        engine=engine,
        workload=f"serving {model}" if model else None,
        max_num_seqs=cap,
        max_num_batched_tokens=_whole(settings, "max_num_batched_tokens"),
        kv_budget_bytes=_whole(settings, "kv_bytes"),
        block_size=_whole(settings, "block_size"),
    )


def _whole(settings: Settings, name: str) -> int | None:
    value = settings.get(name)
    return round(value) if isinstance(value, float) and 0 < value < 2**53 else None
