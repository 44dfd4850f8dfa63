"""Choose the next token from logits: greedily, or at random among the likely ones."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from stallscope.errors import UsageError


@dataclass(frozen=True, slots=True)
class Sampling:
    """How to choose; `temperature` 0 is greedy, and then nothing else matters.

    `top_k` keeps the k likeliest tokens, `top_p` the fewest likeliest that together have at least
    this probability (after top_k).
    """

    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if not 0 <= self.temperature < float("inf"):
            raise UsageError(f"temperature {self.temperature}: give 0 (greedy) or more")
        if self.top_k is not None and self.top_k < 1:
            raise UsageError(f"top-k {self.top_k}: give 1 or more")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise UsageError(f"top-p {self.top_p}: give more than 0 and at most 1")


class Sampler:
    """Draws tokens; the same seed and logits give the same tokens."""

    def __init__(self, sampling: Sampling, device: torch.device) -> None:
        self._sampling = sampling
        self._generator = torch.Generator(device).manual_seed(sampling.seed)

    def sample(self, logits: Tensor) -> list[int]:
        """Return one token per row of logits [rows, vocabulary]."""
        if self._sampling.temperature == 0:
            return _ints(logits.argmax(-1))
        weights = probabilities(logits, self._sampling)
        drawn = torch.multinomial(weights, num_samples=1, generator=self._generator)
        return _ints(drawn.squeeze(1))


def probabilities(logits: Tensor, sampling: Sampling) -> Tensor:
    """Return what each token is drawn with, fp32, rows summing to 1; temperature must not be 0."""
    scaled = logits.float() / sampling.temperature
    if sampling.top_k is not None and sampling.top_k < scaled.shape[-1]:
        least = scaled.topk(sampling.top_k, dim=-1).values[..., -1:]
        scaled = scaled.masked_fill(scaled < least, float("-inf"))
    weights = scaled.softmax(-1)
    if sampling.top_p is None:
        return weights
    ordered, order = weights.sort(dim=-1, descending=True)
    likelier = ordered.cumsum(-1) - ordered  # the probability of all tokens before this one
    kept = ordered.masked_fill(likelier >= sampling.top_p, 0.0)
    return torch.zeros_like(weights).scatter_(-1, order, kept / kept.sum(-1, keepdim=True))


def _ints(tokens: Tensor) -> list[int]:
    return [int(token) for token in tokens.tolist()]
