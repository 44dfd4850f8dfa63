"""Requests that a cut left running: their rows are as old as their first token."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from stallscope.profiler.capture import Request, Token


def with_noted_tokens(requests: Sequence[Request], tokens: Sequence[Token]) -> tuple[Request, ...]:
    """Give each request as many output tokens as were noted of it one by one, if that is more."""
    noted = Counter(token.request for token in tokens)
    return tuple(r._replace(output_tokens=max(r.output_tokens, noted[r.id])) for r in requests)
