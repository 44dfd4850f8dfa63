"""Speculative decoding: tokens a step by acceptance, against what drafting and checking cost."""

from __future__ import annotations

from dataclasses import dataclass, replace

from stallscope.analyzers.cost.operators import StepShape, decode_shape, prefill_shape
from stallscope.analyzers.cost.roofline import CostModel


@dataclass(frozen=True, slots=True)
class Speculation:
    """Drafting `drafted` tokens of which each is accepted with probability `acceptance`.

    `tokens` come of a step on average; `step_s` checks them, `draft_s` drafts them before it;
    `speedup` is of the time per token, against plain steps of `plain_s`.
    """

    drafted: int
    acceptance: float
    tokens: float
    plain_s: float
    step_s: float
    draft_s: float

    @property
    def tpot_s(self) -> float:
        """Seconds per output token of each request."""
        return (self.step_s + self.draft_s) / self.tokens

    @property
    def speedup(self) -> float:
        """How many times as fast as without; below one it slows down."""
        return self.plain_s / self.tpot_s


def tokens_per_step(drafted: int, acceptance: float) -> float:
    """Return the mean tokens of a step, 1 + a + a² + … + a^drafted; one is the model's own."""
    return sum(acceptance**i for i in range(drafted + 1))


def checking_shape(
    batch: int, context: int, drafted: int, *, window: int | None = None
) -> StepShape:
    """A step that checks `drafted` tokens and adds one of its own, of each request."""
    rows = drafted + 1
    shape = prefill_shape(rows, requests=batch, cached=context - 1, window=window)
    return StepShape(shape.tokens, batch * rows, shape.kv_read_tokens, shape.attention_pairs)


def speculate(
    cost: CostModel,
    *,
    batch: int,
    context: int,
    drafted: int,
    acceptance: float,
    draft: CostModel | None = None,
    host_s: float = 0.0,
) -> Speculation:
    """Price speculative decoding at a batch and context; `host_s` is added to every step.

    Without a `draft` model drafting is free (looked up in the prompt). A draft layer first takes
    in all tokens that the model has just checked. Raises ValueError for an acceptance outside 0 to
    1 or no drafted token.
    """
    if not 0.0 <= acceptance <= 1.0 or drafted < 1:
        raise ValueError(f"cannot draft {drafted} tokens of acceptance {acceptance}")
    window = cost.spec.sliding_window
    plain = decode_shape(batch, context, window=window)
    checked = checking_shape(batch, context, drafted, window=window)
    drafting = 0.0
    if draft is not None:
        shape = decode_shape(batch, context, window=draft.spec.sliding_window)
        first = replace(checked, logit_rows=batch) if draft.spec.joins_hidden else shape
        drafting = draft.step_time(first).floor + (drafted - 1) * draft.step_time(shape).floor
    return Speculation(
        drafted=drafted,
        acceptance=acceptance,
        tokens=tokens_per_step(drafted, acceptance),
        plain_s=cost.step_time(plain).floor + host_s,
        step_s=cost.step_time(checked).floor + host_s,
        draft_s=drafting,
    )
