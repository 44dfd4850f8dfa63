"""Selectors of the series that engines' tables know, within what the user selects."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from stallscope.errors import UsageError
from stallscope.profiler.metrics_page.engines import ENGINES
from stallscope.profiler.metrics_page.scrape import START

_BARE = re.compile(r"\s*\w+\s*(?:=|!=|=~|!~)\s*\"")
_LONGEST = 4096


def matchers(select: str) -> str:
    """Return what stands between the braces of --select; braces may be left out.

    Raises UsageError for what is no list of label matchers. Prometheus judges the rest.
    """
    text = select.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    elif not _BARE.match(text):
        raise UsageError(
            f"--select {select!r:.80}: give label matchers in braces, such as '{{job=\"vllm\"}}'"
        )
    if len(text) > _LONGEST:
        raise UsageError(f"--select: longer than {_LONGEST} characters")
    return text.rstrip(", ")


def selector(inner: str, names: Collection[str]) -> str:
    """Return a selector of series by whole names, or regular expressions of such."""
    pattern = "|".join(sorted(names)).replace("\\", "\\\\").replace('"', '\\"')
    name = f'__name__=~"{pattern}"'
    return f"{{{inner},{name}}}" if inner else f"{{{name}}}"


def engine_selectors(inner: str) -> Iterator[str]:
    """Yield a selector for each engine: of all that its table reads, and no buckets.

    One for all would be longer than some proxies let through.
    """
    for known in ENGINES:
        metrics = sorted({_stem(name) for name in (*known.picks, *known.labels)})
        pattern = f"(?:{known.table.prefix.pattern})(?:{'|'.join(metrics)})"
        yield selector(inner, (pattern,))


def start_selector(inner: str) -> str:
    """Return a selector of the times at which processes began."""
    return selector(inner, (START,))


def _stem(name: str) -> str:
    """Return a counter's name with its ending optional: tables know both spellings."""
    return f"{name.removesuffix('_total')}(?:_total)?" if name.endswith("_total") else name
