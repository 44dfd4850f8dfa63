"""The engines whose pages are read, and which of their quantities a sample tells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from stallscope.profiler.metrics_page.exposition import Sample
from stallscope.profiler.metrics_page.llama_cpp import LLAMA_CPP
from stallscope.profiler.metrics_page.sglang import SGLANG
from stallscope.profiler.metrics_page.table import Pick, Table
from stallscope.profiler.metrics_page.tensorrt import TRITON, TRTLLM
from stallscope.profiler.metrics_page.tgi import TGI
from stallscope.profiler.metrics_page.vllm import VLLM


class Known(NamedTuple):
    """An engine's table, made for looking metrics up."""

    table: Table
    picks: Mapping[str, tuple[Pick, ...]]
    labels: Mapping[str, tuple[tuple[str, str], ...]]


def _known(table: Table) -> Known:
    labels: dict[str, list[tuple[str, str]]] = {}
    for fact, places in table.labels.items():
        for place in places:
            metric, _, label = place.partition(".")
            labels.setdefault(metric, []).append((fact, label))
    return Known(table, table.picks(), {k: tuple(v) for k, v in labels.items()})


ENGINES = tuple(_known(table) for table in (VLLM, SGLANG, TRTLLM, TRITON, TGI, LLAMA_CPP))
# Series that are never looked at: the bulk of every page.
_BUCKET = re.compile(r"^#|^[\w:]+_(?:bucket|created)[ {]")
_PREFIXES = re.compile("|".join(f"(?:{k.table.prefix.pattern})" for k in ENGINES))


def may_matter(line: str) -> bool:
    """Tell quickly whether a line can be of use: it is of an engine's, and no bucket."""
    return _PREFIXES.match(line) is not None and _BUCKET.match(line) is None


def engine_of(sample: Sample) -> tuple[Known, str] | None:
    """Return the engine that a sample is of, and its metric without the prefix."""
    return _engine_named(sample.name)


def quantities_of(name: str) -> tuple[str, ...]:
    """Return what is read of a metric, by our names; nothing for one that is not used."""
    found = _engine_named(name)
    picks = () if found is None else found[0].picks.get(found[1], ())
    return tuple(dict.fromkeys(pick[0] for pick in picks))


@lru_cache(maxsize=4096)
def _engine_named(name: str) -> tuple[Known, str] | None:
    for known in ENGINES:
        found = known.table.prefix.match(name)
        if found is not None:
            metric = name[found.end() :]
            if metric in known.picks or metric in known.labels:
                return known, metric
    return None
