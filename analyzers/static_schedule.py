"""Static batching: a batch takes nobody in until its last request ends; pure, like `schedule`."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from stallscope.analyzers.schedule import (
    Padding,
    ScheduledChunk,
    Scheduler,
    SchedulerConfig,
    Scheduling,
    StepPlan,
)
from stallscope.profiler.spec import attention_pairs, keys_read


@dataclass(slots=True, eq=False)
class _Row:
    """A request's row of the batch; it stays in the tensors after its request has ended."""

    request: int
    input_tokens: int
    output_tokens: int
    made: int = 0
    is_live: bool = True

    def chunk(self) -> ScheduledChunk:
        """The whole prompt, then a token a step; every step samples."""
        if self.made == 0:
            return ScheduledChunk(self.request, 0, self.input_tokens, True, True)
        start = self.input_tokens + self.made - 1
        return ScheduledChunk(self.request, start, 1, False, True)


class StaticScheduler:
    """First come, first served, a batch at a time, padded to its longest prompt.

    The first requests of the queue form a batch, as many as the sequence cap lets run and as the
    token budget lets prefill in one step, padding included. KV memory is not accounted for: the
    batch's tensors grow as they need.
    """

    def __init__(self, config: SchedulerConfig) -> None:
        self.config = config
        self._queue: deque[_Row] = deque()
        self._batch: list[_Row] = []
        self._width = 0  # tokens in each row's cache, padding included

    @property
    def waiting(self) -> int:
        """Requests in the queue."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Requests of the batch that have not ended."""
        return sum(row.is_live for row in self._batch)

    @property
    def in_flight(self) -> int:
        """Requests that have arrived and not ended."""
        return self.waiting + self.running

    @property
    def used_blocks(self) -> int:
        """KV blocks that the batch's tensors fill, ended requests and padding included."""
        return self.config.blocks(len(self._batch) * self._width)

    def add(self, request: int, input_tokens: int, output_tokens: int) -> None:
        """Queue a request. Raises ValueError if its prompt never fits in a step."""
        if input_tokens < 1 or output_tokens < 1:
            raise ValueError(f"request {request} needs at least one token in and one out")
        if input_tokens > self.config.max_num_batched_tokens:
            raise ValueError(
                f"request {request} has {input_tokens} prompt tokens; a static batch prefills "
                f"{self.config.max_num_batched_tokens} in a step at most"
            )
        self._queue.append(_Row(request, input_tokens, output_tokens))

    def schedule(self) -> StepPlan:
        """Plan the next step; no chunks means nothing to do."""
        admitted = () if self._batch else self._form()
        chunks = tuple(row.chunk() for row in self._batch if row.is_live)
        if not chunks:
            return StepPlan((), (), (), None)
        new = max(chunk.tokens for chunk in chunks)
        self._width += new
        padding = padding_of(
            chunks,
            rows=len(self._batch),
            new=new,
            width=self._width,
            window=self.config.sliding_window,
        )
        blocked_by = self._blocked_by(is_first=bool(admitted))
        return StepPlan(chunks, admitted, (), blocked_by, padding)

    def complete(self, plan: StepPlan, stopped: Collection[int] = ()) -> tuple[int, ...]:
        """Advance by an executed step; return the requests that ended.

        `stopped` are requests that end early because they sampled an end-of-sequence token.
        """
        ended = []
        for row in self._batch:
            if row.is_live:
                row.made += 1
                row.is_live = row.made < row.output_tokens and row.request not in stopped
                if not row.is_live:
                    ended.append(row.request)
        if not self.running:
            self._batch, self._width = [], 0
        return tuple(ended)

    def _form(self) -> tuple[int, ...]:
        longest = 0
        while self._queue and len(self._batch) < self.config.max_num_seqs:
            longest = max(longest, self._queue[0].input_tokens)
            if (len(self._batch) + 1) * longest > self.config.max_num_batched_tokens:
                break
            self._batch.append(self._queue.popleft())
        return tuple(row.request for row in self._batch)

    def _blocked_by(self, *, is_first: bool) -> str | None:
        if not self._queue:
            return None
        if self.running >= self.config.max_num_seqs:
            return "seqs"
        return "tokens" if is_first else "batch"


def padding_of(
    chunks: Sequence[ScheduledChunk], *, rows: int, new: int, width: int, window: int | None
) -> Padding:
    """Return what `rows` of `new` tokens, each the last of `width`, compute beyond the chunks."""
    before = width - new
    read = sum(keys_read(chunk.start, chunk.tokens, window) for chunk in chunks)
    pairs = sum(attention_pairs(chunk.start, chunk.tokens, window) for chunk in chunks)
    return Padding(
        tokens=rows * new - sum(chunk.tokens for chunk in chunks),
        logit_rows=rows - sum(chunk.samples for chunk in chunks),
        context_tokens=rows * keys_read(before, new, window) - read,
        pairs=rows * attention_pairs(before, new, window) - pairs,
    )


def scheduler_for(config: SchedulerConfig) -> Scheduling:
    """Return the scheduler that the limits ask for."""
    return StaticScheduler(config) if config.static else Scheduler(config)
