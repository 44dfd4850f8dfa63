"""A token budget that nobody stated, from batches of prompts that all end at the same number."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from stallscope.analyzers.load.engines import Moment, queued

_LEAST = 3  # batches with a queue behind them: fewer may be equal by chance
_HITS = 0.8  # of them, those that took just as many tokens as the largest
_COUNTERS = ("prefill_batches_total", "input_tokens_total", "prefill_requests_total")


class _Batch(NamedTuple):
    """Tokens and prompts of a batch, and whether requests waited behind it."""

    engine: str
    tokens: float
    prompts: float
    has_queue: bool


def budgets_hit(found: Sequence[Moment]) -> dict[str, int]:
    """Return the tokens of a batch that each engine's queue stood behind, where it was a budget.

    Batches that take the same number of tokens from differing numbers of prompts were cut there;
    with as many prompts each, the prompts may be of one length.
    """
    batches: dict[str, list[_Batch]] = {}
    for batch in _batches(found):
        batches.setdefault(batch.engine, []).append(batch)
    hit = {}
    for engine, rows in batches.items():
        most = max(b.tokens for b in rows)
        behind = [b for b in rows if b.has_queue]
        full = [b for b in behind if b.tokens == most]
        differ = len({b.prompts for b in full}) > 1
        if differ and len(full) >= max(_LEAST, _HITS * len(behind)):
            hit[engine] = round(most)
    return hit


def _batches(found: Sequence[Moment]) -> Iterator[_Batch]:
    for now, after in pairwise(found):
        for engine, values in after.engines.items():
            before = now.engines.get(engine, {})
            if not all(name in v for name in _COUNTERS for v in (before, values)):
                continue
            batches, tokens, prompts = (values[name] - before[name] for name in _COUNTERS)
            if batches == 1:
                yield _Batch(engine, tokens, prompts, queued(values) > 0)
