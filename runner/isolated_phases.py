"""Plan a load in stretches of only prefill and only decode, long enough for slow counters."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from stallscope.analyzers.schedule import ScheduledChunk, SchedulerConfig, StepPlan
from stallscope.profiler.capture import LEAST_STRETCH_NS


@dataclass(slots=True, eq=False)
class _Member:
    """A request: its prompt ends at `prompt` tokens in the cache, its output at `end`."""

    request: int
    prompt: int
    end: int  # the last generated token never enters the cache
    cached: int = 0
    blocks: int = 0


class _Stretch:
    """Which tokens of a wave are still to do in one phase, in this pass over it."""

    def __init__(self, wave: tuple[_Member, ...], *, is_prefill: bool) -> None:
        self.wave = wave
        self.is_prefill = is_prefill
        self.begun_ns: int | None = None
        self.is_repeating = False

    def left(self, member: _Member) -> int:
        return (member.prompt if self.is_prefill else member.end) - member.cached

    @property
    def is_pass_done(self) -> bool:
        return not any(map(self.left, self.wave))

    def repeat(self) -> None:
        """Go back to the stretch's beginning; what is cached is written over."""
        self.is_repeating = True
        for member in self.wave:
            member.cached = 0 if self.is_prefill else member.prompt

    def chunks(self, config: SchedulerConfig) -> Iterator[ScheduledChunk]:
        """Yield the next step: prompts in order within the token budget, or a token of each."""
        budget = config.max_num_batched_tokens
        for member in self.wave:
            left = self.left(member)
            tokens = left if self.is_prefill else min(left, 1)
            if self.is_prefill and config.chunked_prefill:
                tokens = min(left, budget)
            if tokens > budget:
                return
            if tokens:
                budget -= tokens
                samples = tokens == left or not self.is_prefill
                yield ScheduledChunk(
                    member.request, member.cached, tokens, self.is_prefill, samples
                )


class IsolatedPhases:
    """Plans a load in waves, first come, first served; each wave holds as many requests as fit.

    A wave is prefilled, then decoded. Either stretch is repeated from its beginning, whole passes,
    until it has lasted `least_ns`; a pass that is repeated computes the very same tokens. Nothing
    is preempted, since a wave's KV blocks suffice for all of it at full length.
    """

    def __init__(
        self,
        config: SchedulerConfig,
        *,
        clock: Callable[[], int],
        least_ns: int = LEAST_STRETCH_NS,
    ) -> None:
        self.config = config
        self._clock = clock
        self._least_ns = least_ns
        self._queue: deque[_Member] = deque()
        self._stretch = _Stretch((), is_prefill=True)

    @property
    def waiting(self) -> int:
        """Requests that wait for a later wave."""
        return len(self._queue)

    @property
    def running(self) -> int:
        """Requests of the present wave."""
        return len(self._stretch.wave)

    @property
    def in_flight(self) -> int:
        """Requests that have arrived and not finished."""
        return self.waiting + self.running

    @property
    def used_blocks(self) -> int:
        """KV blocks held by the wave."""
        return sum(member.blocks for member in self._stretch.wave)

    def add(self, request: int, input_tokens: int, output_tokens: int) -> None:
        """Queue a request. Raises ValueError if no wave could hold it."""
        member = _Member(request, input_tokens, input_tokens + output_tokens - 1)
        if self.config.blocks(member.end) > self.config.num_blocks:
            raise ValueError(f"request {request} does not fit in {self.config.num_blocks} blocks")
        if not self.config.chunked_prefill and input_tokens > self.config.max_num_batched_tokens:
            raise ValueError(f"request {request}'s prompt is longer than a step may be")
        self._queue.append(member)

    def schedule(self) -> StepPlan:
        """Plan the next step of the stretch, of a new wave if there is none."""
        admitted: tuple[int, ...] = ()
        if not self._stretch.wave:
            self._stretch = _Stretch(self._next_wave(), is_prefill=True)
            admitted = tuple(member.request for member in self._stretch.wave)
        if self._stretch.begun_ns is None:
            self._stretch.begun_ns = self._clock()
        chunks = tuple(self._stretch.chunks(self.config))
        members = {member.request: member for member in self._stretch.wave}
        for chunk in chunks:
            member = members[chunk.request]
            member.blocks = max(member.blocks, self.config.blocks(chunk.start + chunk.tokens))
        return StepPlan(chunks, admitted, preempted=(), blocked_by=None)

    def complete(self, plan: StepPlan, stopped: Collection[int] = ()) -> tuple[int, ...]:
        """Advance by an executed step; return the wave's requests once its last stretch is over.

        A request of `stopped` ends there in every pass.
        """
        stretch = self._stretch
        members = {member.request: member for member in stretch.wave}
        for chunk in plan.chunks:
            member = members[chunk.request]
            member.cached += chunk.tokens
            if chunk.request in stopped and not stretch.is_repeating:
                member.end = member.cached
        return self._end_pass() if stretch.is_pass_done else ()

    def _end_pass(self) -> tuple[int, ...]:
        stretch = self._stretch
        if self._clock() - (stretch.begun_ns or 0) < self._least_ns:
            stretch.repeat()
            return ()
        if stretch.is_prefill and any(member.end > member.prompt for member in stretch.wave):
            self._stretch = _Stretch(stretch.wave, is_prefill=False)
            return ()
        self._stretch = _Stretch((), is_prefill=True)
        return tuple(member.request for member in stretch.wave)

    def _next_wave(self) -> tuple[_Member, ...]:
        """Take from the queue what fits at full length, and in one decode step."""
        most = min(self.config.max_num_seqs, self.config.max_num_batched_tokens)
        free = self.config.num_blocks
        wave: list[_Member] = []
        while self._queue and len(wave) < most:
            free -= self.config.blocks(self._queue[0].end)
            if free < 0:
                break
            wave.append(self._queue.popleft())
        return tuple(wave)
