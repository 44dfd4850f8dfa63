"""The tokens in an engine's KV cache, by its gauge and no more exactly than it was printed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stallscope.analyzers.cost.roofline import CostModel, kv_bytes_on_rank
from stallscope.analyzers.load.pool_use import used_share
from stallscope.analyzers.load.sampled_steps import Interval
from stallscope.analyzers.stated.pool import pool_tokens
from stallscope.profiler.capture import Capture

_PRINTED = (0.01, 0.001)  # the last digit of a used share in a log: 0.03 or 0.2 %
_COARSE = 0.05  # of the mean: half a digit above this is worth an interval


class Context(NamedTuple):
    """Mean tokens in the KV cache, and how many half of the gauge's last digit is."""

    tokens: float
    half_digit: float

    @property
    def is_coarse(self) -> bool:
        """Whether the gauge was printed with too few digits for one number."""
        return self.half_digit > _COARSE * self.tokens

    @property
    def text(self) -> str:
        """An interval where it is coarse: "1,302 to 2,170 tokens"."""
        if not self.is_coarse:
            return f"{self.tokens:,.0f} tokens"
        low, high = max(0.0, self.tokens - self.half_digit), self.tokens + self.half_digit
        return f"{low:,.0f} to {high:,.0f} tokens"


def pool_context(capture: Capture, cost: CostModel, busy: Sequence[Interval]) -> Context | None:
    """Return it from the pool's use and its size, over what ran."""
    per_token = kv_bytes_on_rank(cost)
    pool = pool_tokens(capture, per_token)
    seen = [
        (i.seconds, share, size)
        for i in busy
        if (share := used_share(i.now)) is not None
        and (size := i.now.get("kv_total_bytes", 0.0) / per_token or pool) is not None
    ]
    total = sum(seconds for seconds, _, _ in seen)
    if not total:
        return None
    digit = 0.0 if any("kv_used_bytes" in i.now for i in busy) else _last_digit(capture)
    tokens = sum(seconds * share * size for seconds, share, size in seen) / total
    return Context(tokens, digit / 2 * sum(s * size for s, _, size in seen) / total)


def _last_digit(capture: Capture) -> float:
    """Return the digit that all readings of the pool end at; 0 where they have more digits."""
    shares = [s.value for s in capture.engine_samples if s.name == "kv_used_fraction"]
    fits = (d for d in _PRINTED if all(abs(v / d - round(v / d)) < 1e-6 for v in shares))
    return next(fits, 0.0)
