"""The work of one engine step, from what a caller of the Recorder knows about it."""

from __future__ import annotations

from typing import NamedTuple

from stallscope.profiler.capture import Phase
from stallscope.profiler.counts import BITS, count


class StepWork(NamedTuple):
    """A step's shape; the fields mean what they mean in capture.Step."""

    phase: Phase
    warmup: bool
    prefill_requests: int
    prefill_tokens: int
    decode_requests: int
    context_tokens: int | None
    attention_pairs: int | None
    logit_rows: int | None


def prefill_work(tokens: int, requests: int, cached_tokens: int) -> StepWork:
    """`tokens` new tokens in all, over `cached_tokens` in all; requests of equal length."""
    if type(tokens) is not int or tokens >> BITS:
        tokens = count("tokens", tokens)
    if type(requests) is not int or requests >> BITS:
        requests = count("requests", requests)
    if type(cached_tokens) is not int or cached_tokens >> BITS:
        cached_tokens = count("cached_tokens", cached_tokens)
    if requests < 1 or tokens < requests or cached_tokens < 0:
        raise ValueError(
            f"a prefill needs a token per request: {tokens=}, {requests=}, {cached_tokens=}"
        )
    pairs = causal_pairs(tokens, requests, cached_tokens)
    if pairs >> BITS:
        raise ValueError(
            f"no prefill attends to {pairs} pairs of tokens: {tokens=}, {cached_tokens=}"
        )
    return StepWork(
        phase="prefill",
        warmup=False,
        prefill_requests=requests,
        prefill_tokens=tokens,
        decode_requests=0,
        context_tokens=cached_tokens + tokens,
        attention_pairs=pairs,
        logit_rows=requests,
    )


def decode_work(batch: int, context_tokens: int | None) -> StepWork:
    """One new token for each of `batch` requests, reading `context_tokens` KV entries in all."""
    if type(batch) is not int or batch >> BITS:
        batch = count("batch", batch)
    if type(context_tokens) is not int or context_tokens >> BITS:
        context_tokens = None if context_tokens is None else count("context_tokens", context_tokens)
    if batch < 1 or (context_tokens is not None and context_tokens < batch):
        raise ValueError(f"a decode needs a context per request: {batch=}, {context_tokens=}")
    shape = ("decode", False, 0, 0, batch, context_tokens, context_tokens, batch)
    return tuple.__new__(StepWork, shape)  # in a third of the time of StepWork(phase=…)


def mixed_work(prefill: StepWork, decode: StepWork) -> StepWork:
    """A step that does both; what is unknown of one part is unknown of the sum."""
    return StepWork(
        phase="mixed",
        warmup=False,
        prefill_requests=prefill.prefill_requests,
        prefill_tokens=prefill.prefill_tokens,
        decode_requests=decode.decode_requests,
        context_tokens=_sum(prefill.context_tokens, decode.context_tokens),
        attention_pairs=_sum(prefill.attention_pairs, decode.attention_pairs),
        logit_rows=_sum(prefill.logit_rows, decode.logit_rows),
    )


def warmup_work(tokens: int) -> StepWork:
    """A pass that measures nothing; its tokens stand as prefill tokens of no request."""
    if type(tokens) is not int or tokens >> BITS:
        tokens = count("tokens", tokens)
    if tokens < 1:
        raise ValueError(f"a warm-up needs a token: {tokens=}")
    return StepWork("other", True, 0, tokens, 0, None, None, None)


def causal_pairs(tokens: int, requests: int, cached_tokens: int) -> int:
    """Count (new token, attended key) pairs, the tokens shared out as evenly as they go.

    A request with t new tokens over c cached ones has t*c + t*(t+1)/2.
    """
    even, longer = divmod(tokens, requests)
    among_new = longer * _triangle(even + 1) + (requests - longer) * _triangle(even)
    return tokens * cached_tokens // requests + among_new


def _triangle(n: int) -> int:
    return n * (n + 1) // 2


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
