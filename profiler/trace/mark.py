"""What one engine step's mark says."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Literal

MarkedPhase = Literal["prefill", "decode", "mixed", "other"]


@dataclass(frozen=True, slots=True)
class StepMark:
    """One step's work as its mark states it; None is what the mark does not say.

    `context_tokens` counts KV entries read and `attention_pairs` (new token, attended key) pairs,
    as in capture.Step.
    """

    phase: MarkedPhase
    engine: str
    warmup: bool = False
    prefill_requests: int | None = None
    prefill_tokens: int | None = None
    decode_requests: int | None = None
    context_tokens: int | None = None
    attention_pairs: int | None = None

    @property
    def counts(self) -> bool:
        """Tell whether the mark says how many requests its step holds."""
        prefills, decodes = self.phase in ("prefill", "mixed"), self.phase in ("decode", "mixed")
        return not (prefills and self.prefill_requests is None) and not (
            decodes and self.decode_requests is None
        )

    def completed(self, other: StepMark) -> StepMark:
        """Return this mark with what only another one of the same step says."""
        missing = {
            field.name: getattr(other, field.name)
            for field in fields(self)
            if getattr(self, field.name) is None
        }
        return replace(self, **missing)


@dataclass(frozen=True, slots=True)
class Work:
    """One group of requests in a step: how many, their new tokens, and sums over the requests.

    With q new tokens of a request and k keys that its last one attends to: `queries` is Σq, `keys`
    Σk, `squares` Σq² and `products` Σqk.
    """

    requests: int | None = None
    queries: int | None = None
    keys: int | None = None
    squares: int | None = None
    products: int | None = None

    @property
    def is_empty(self) -> bool:
        return self.requests == 0

    @property
    def pairs(self) -> int | None:
        """Pairs under a causal mask: a request's j-th new token sees k − q + j keys."""
        if self.products is None or self.squares is None or self.queries is None:
            return None
        return self.products - (self.squares - self.queries) // 2


NOTHING = Work(0, 0, 0, 0, 0)


def mark_of(engine: str, prefill: Work, decode: Work) -> StepMark:
    """Put together the mark of a step from its two groups of requests."""
    return StepMark(
        _phase(prefill, decode),
        engine,
        prefill_requests=prefill.requests,
        prefill_tokens=prefill.queries,
        decode_requests=decode.requests,
        context_tokens=_sum(prefill.keys, decode.keys),
        attention_pairs=_sum(prefill.pairs, decode.pairs),
    )


def _phase(prefill: Work, decode: Work) -> MarkedPhase:
    if prefill.is_empty:
        return "other" if decode.is_empty else "decode"
    return "prefill" if decode.is_empty else "mixed"


def _sum(a: int | None, b: int | None) -> int | None:
    return None if a is None or b is None else a + b
