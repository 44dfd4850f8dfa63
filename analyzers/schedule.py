"""The schedulers' plan, and continuous batching: pure, shared by the engine and what-if."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True)
class SchedulerConfig:
    """The admission limits; `num_blocks` KV blocks of `block_size` tokens each.

    With a sliding window a request gives back the blocks that none of its later tokens attends to.
    `static` batches take nobody in until their last request ends.
    """

    max_num_seqs: int
    max_num_batched_tokens: int
    num_blocks: int
    block_size: int = 16
    chunked_prefill: bool = True
    sliding_window: int | None = None
    static: bool = False

    def __post_init__(self) -> None:
        limits = (self.max_num_seqs, self.max_num_batched_tokens, self.num_blocks, self.block_size)
        if min(limits) < 1:
            raise ValueError(f"every limit of the scheduler must be at least 1: {self}")

    def blocks(self, tokens: int) -> int:
        """Return the KV blocks that `tokens` of one request occupy."""
        return -(-tokens // self.block_size)

    def past_blocks(self, cached: int) -> int:
        """Return how many of the first blocks the token after `cached` ones is out of reach of."""
        if self.sliding_window is None:
            return 0
        return max(0, cached + 1 - self.sliding_window) // self.block_size

    def most_blocks(self, cached: int) -> int:
        """Return the most blocks held at once on the way to `cached` tokens.

        That is in the step that writes the most new tokens behind a full window, at the worst
        place of both in their blocks.
        """
        if self.sliding_window is None:
            return self.blocks(cached)
        step = min(self.max_num_batched_tokens, cached)
        reach = self.sliding_window - 1 + step + self.block_size - 1
        return min(self.blocks(cached), self.blocks(reach))


@dataclass(frozen=True, slots=True)
class ScheduledChunk:
    """New tokens of one request in a step, after `start` tokens already in the KV cache."""

    request: int
    start: int
    tokens: int
    is_prefill: bool
    samples: bool


@dataclass(frozen=True, slots=True)
class Padding:
    """What a step computes on top of its chunks, for nobody, because its tensors are filled up."""

    tokens: int = 0
    logit_rows: int = 0
    context_tokens: int = 0
    pairs: int = 0


@dataclass(frozen=True, slots=True)
class StepPlan:
    """One step; `blocked_by` (a limit: "kv", "seqs", …) is what kept the queue's head out of it."""

    chunks: tuple[ScheduledChunk, ...]
    admitted: tuple[int, ...]
    preempted: tuple[int, ...]
    blocked_by: str | None
    padding: Padding = Padding()


class Scheduling(Protocol):
    """A scheduler, as the engine and the simulator use one."""

    @property
    def waiting(self) -> int: ...

    @property
    def running(self) -> int: ...

    @property
    def in_flight(self) -> int: ...

    @property
    def used_blocks(self) -> int: ...

    def add(self, request: int, input_tokens: int, output_tokens: int) -> None: ...

    def schedule(self) -> StepPlan: ...

    def complete(self, plan: StepPlan, stopped: Collection[int] = ()) -> tuple[int, ...]: ...


@dataclass(slots=True, eq=False)
class _Sequence:
    """A request's progress. Its last known token is not in the cache until a step processes it."""

    request: int
    known: int  # prompt + generated tokens
    final: int  # known tokens at its maximum length
    cached: int = 0
    prefill_until: int = 0  # below this many cached tokens it (re)computes what it knew
    blocks: int = 0  # that it holds
    past: int = 0  # that it has given back, all at its beginning

    @property
    def most_cached(self) -> int:
        """Tokens in the cache at its maximum length: the last generated one never enters."""
        return self.final - 1


class Scheduler:
    """First come, first served over a block-accounted KV pool, preempting by recompute.

    Chunked: running requests first in the order of admission, then the queue, within the token
    budget; a prompt may be spread over steps. Only the last admitted request can be in the middle
    of its prompt (it took the rest of the budget), so decodes come before prefills. Unchunked: a
    step is whole prompts where any can be admitted, else one token of each running request.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config
        self._queue: deque[_Sequence] = deque()
        self._running: list[_Sequence] = []  # in the order of admission
        self._used_blocks = 0

    @property
    def waiting(self) -> int:
        """Requests in the queue, preempted ones included."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Requests that hold KV blocks."""
        return len(self._running)

    @property
    def in_flight(self) -> int:
        """Requests that have arrived and not finished."""
        return self.waiting + self.running

    @property
    def used_blocks(self) -> int:
        """KV blocks held by running requests."""
        return self._used_blocks

    def add(self, request: int, input_tokens: int, output_tokens: int) -> None:
        """Queue a request. Raises ValueError if it could never be completed within the limits."""
        if input_tokens < 1 or output_tokens < 1:
            raise ValueError(f"request {request} needs at least one token in and one out")
        sequence = _Sequence(request, known=input_tokens, final=input_tokens + output_tokens)
        need, have = self.config.most_blocks(sequence.most_cached), self.config.num_blocks
        if need > have:
            raise ValueError(f"request {request} needs {need} KV blocks, the pool has {have}")
        budget = self.config.max_num_batched_tokens
        # After a preemption everything generated so far is part of the prompt.
        if not self.config.chunked_prefill and sequence.most_cached > budget:
            raise ValueError(
                f"request {request} may have to prefill {sequence.most_cached} tokens in one step; "
                f"without chunked prefill the token budget ({budget}) must hold them"
            )
        self._queue.append(sequence)

    def schedule(self) -> StepPlan:
        """Plan the next step and take its KV blocks; no chunks means nothing to do."""
        if self.config.chunked_prefill:
            chunks, preempted = self._continue_running()
            admitted = () if preempted else self._admit(chunks)
        else:
            chunks, preempted = [], []
            admitted = self._admit(chunks)
            if not chunks:
                chunks, preempted = self._continue_running()
        blocked_by = self._blocked_by(preempted=bool(preempted))
        return StepPlan(tuple(chunks), tuple(admitted), tuple(preempted), blocked_by)

    def complete(self, plan: StepPlan, stopped: Collection[int] = ()) -> tuple[int, ...]:
        """Advance by an executed step; return the requests that finished and free their blocks.

        `stopped` are requests that end early because they sampled an end-of-sequence token.
        """
        sequences = {sequence.request: sequence for sequence in self._running}
        finished = []
        for chunk in plan.chunks:
            sequence = sequences[chunk.request]
            sequence.cached += chunk.tokens
            self._give_past_blocks(sequence)
            if chunk.samples:
                sequence.known += 1
                if sequence.known == sequence.final or chunk.request in stopped:
                    self._release(sequence)
                    finished.append(chunk.request)
        return tuple(finished)

    def blocks_of(self, request: int) -> int:
        """Return the KV blocks that a request holds now."""
        return next((s.blocks for s in self._running if s.request == request), 0)

    def _continue_running(self) -> tuple[list[ScheduledChunk], list[int]]:
        budget = self.config.max_num_batched_tokens
        chunks: list[ScheduledChunk] = []
        preempted: list[int] = []
        position = 0  # the list shrinks from its end when requests are preempted
        while position < len(self._running) and budget > 0:
            sequence = self._running[position]
            tokens = min(sequence.known - sequence.cached, budget)
            while not self._take_blocks(sequence, tokens):
                victim = self._running[-1]
                self._preempt(victim)
                preempted.append(victim.request)
                if victim is sequence:
                    return chunks, preempted
            chunks.append(_chunk(sequence, tokens))
            budget -= tokens
            position += 1
        return chunks, preempted

    def _admit(self, chunks: list[ScheduledChunk]) -> tuple[int, ...]:
        budget = self.config.max_num_batched_tokens - sum(chunk.tokens for chunk in chunks)
        admitted = []
        while self._queue and len(self._running) < self.config.max_num_seqs:
            head = self._queue[0]
            tokens = min(head.known, budget) if self.config.chunked_prefill else head.known
            if not 0 < tokens <= budget or not self._take_blocks(head, tokens):
                break
            self._running.append(self._queue.popleft())
            head.prefill_until = head.known
            chunks.append(_chunk(head, tokens))
            admitted.append(head.request)
            budget -= tokens
        return tuple(admitted)

    def _blocked_by(self, *, preempted: bool) -> str | None:
        if not self._queue:
            return None
        head = self._queue[0].known
        if self.config.chunked_prefill:
            head = min(head, self.config.max_num_batched_tokens)
        if preempted or self.config.blocks(head) > self.config.num_blocks - self._used_blocks:
            return "kv"
        return "seqs" if len(self._running) >= self.config.max_num_seqs else "tokens"

    def _take_blocks(self, sequence: _Sequence, tokens: int) -> bool:
        missing = self.config.blocks(sequence.cached + tokens) - sequence.past - sequence.blocks
        if missing > self.config.num_blocks - self._used_blocks:
            return False
        sequence.blocks += missing
        self._used_blocks += missing
        return True

    def _give_past_blocks(self, sequence: _Sequence) -> None:
        given = self.config.past_blocks(sequence.cached) - sequence.past
        sequence.past += given
        sequence.blocks -= given
        self._used_blocks -= given

    def _preempt(self, sequence: _Sequence) -> None:
        self._release(sequence)
        sequence.cached = sequence.past = 0
        self._queue.appendleft(sequence)

    def _release(self, sequence: _Sequence) -> None:
        self._running.remove(sequence)
        self._used_blocks -= sequence.blocks
        sequence.blocks = 0


def _chunk(sequence: _Sequence, tokens: int) -> ScheduledChunk:
    return ScheduledChunk(
        request=sequence.request,
        start=sequence.cached,
        tokens=tokens,
        is_prefill=sequence.cached < sequence.prefill_until,
        samples=sequence.cached + tokens == sequence.known,
    )
