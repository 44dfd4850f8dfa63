"""The load: how long requests are and when they arrive."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Protocol

from stallscope.errors import UsageError


@dataclass(frozen=True, slots=True)
class RequestSize:
    """Prompt and output lengths of one request."""

    input_tokens: int
    output_tokens: int

    @property
    def kv_tokens(self) -> int:
        """Tokens in the KV cache at full length: the last generated one never enters."""
        return self.input_tokens + self.output_tokens - 1


@dataclass(frozen=True, slots=True)
class Arrival:
    """A request that arrives `t_ns` after the start of the load."""

    request: int
    t_ns: int
    size: RequestSize


class Workload(Protocol):
    """Says which requests arrive, given the clock and how many have finished."""

    sizes: Sequence[RequestSize]

    def due(self, now_ns: int, finished: int) -> tuple[Arrival, ...]:
        """Return the arrivals up to now that have not been returned before."""
        ...

    def next_arrival_ns(self) -> int | None:
        """Return when the next request comes; None if none will, or only after a completion."""
        ...


class ClosedLoop:
    """`concurrency` clients, each sending its next request when its last one has finished."""

    def __init__(self, sizes: Sequence[RequestSize], concurrency: int) -> None:
        self.sizes = sizes
        self.concurrency = concurrency
        self._sent = 0

    def due(self, now_ns: int, finished: int) -> tuple[Arrival, ...]:
        first, self._sent = self._sent, min(len(self.sizes), self.concurrency + finished)
        return tuple(Arrival(i, now_ns, self.sizes[i]) for i in range(first, self._sent))

    def next_arrival_ns(self) -> int | None:
        return None


class OpenLoop:
    """Requests that arrive at given times, whatever the engine does."""

    def __init__(self, sizes: Sequence[RequestSize], times_ns: Sequence[int]) -> None:
        self.sizes = sizes
        self.times_ns = times_ns
        self._sent = 0

    def due(self, now_ns: int, finished: int) -> tuple[Arrival, ...]:
        first = self._sent
        while self._sent < len(self.times_ns) and self.times_ns[self._sent] <= now_ns:
            self._sent += 1
        return tuple(Arrival(i, self.times_ns[i], self.sizes[i]) for i in range(first, self._sent))

    def next_arrival_ns(self) -> int | None:
        return self.times_ns[self._sent] if self._sent < len(self.times_ns) else None


def parse_lengths(text: str, option: str) -> tuple[int, int]:
    """Read "N" or "A:B" tokens, both ends included. Raises UsageError naming the option."""
    low, _, high = text.partition(":")
    try:
        bounds = int(low), int(high if ":" in text else low)
    except ValueError:
        raise UsageError(f"{option} {text!r}: give a number of tokens, or a range as A:B") from None
    if not 1 <= bounds[0] <= bounds[1]:
        raise UsageError(f"{option} {text!r}: give at least 1 token, and the smaller number first")
    return bounds


def random_sizes(
    inputs: tuple[int, int], outputs: tuple[int, int], *, count: int, seed: int
) -> tuple[RequestSize, ...]:
    """Draw lengths uniformly from the two ranges."""
    rng = random.Random(f"sizes {seed}")
    return tuple(RequestSize(rng.randint(*inputs), rng.randint(*outputs)) for _ in range(count))


def poisson_times_ns(rate_per_s: float, *, count: int, seed: int) -> tuple[int, ...]:
    """Draw the arrival times of a Poisson process: exponential gaps, the first one included."""
    rng = random.Random(f"arrivals {seed}")
    return tuple(
        round(t * 1e9) for t in accumulate(rng.expovariate(rate_per_s) for _ in range(count))
    )


def prompt(request: int, tokens: int, *, vocab_size: int, seed: int) -> list[int]:
    """Make up a request's prompt, the same for the same seed."""
    return random.Random(f"prompt {seed} {request}").choices(range(vocab_size), k=tokens)
