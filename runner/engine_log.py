"""Turns what the engine does into capture rows: steps, requests, tokens, KV life cycle."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager

from stallscope.analyzers.schedule import SchedulerConfig, Scheduling, StepPlan
from stallscope.profiler.engine_sampler import EngineState
from stallscope.profiler.recorder import Recorder
from stallscope.profiler.spec import keys_read
from stallscope.runner.probe_rows import StepTimes
from stallscope.runner.request_log import RequestLog
from stallscope.runner.step_row import Span, context, phase_of, step_row


class EngineLog(RequestLog):
    """Writes one load's rows. A warm-up leaves only its steps, marked as such."""

    def __init__(
        self,
        recorder: Recorder,
        config: SchedulerConfig,
        *,
        token_bytes: int,
        warmup: bool = False,
    ) -> None:
        super().__init__(recorder, warmup=warmup)
        self.step_times = StepTimes()
        self._blocks = config.blocks
        self._past_blocks = config.past_blocks
        self._window = config.sliding_window
        self._token_bytes = token_bytes
        self._block_bytes = config.block_size * token_bytes
        self._kv_total_bytes = config.num_blocks * self._block_bytes

    def scheduled(self, t_ns: int, plan: StepPlan, scheduler: Scheduling) -> EngineState:
        """Note preemptions, admissions and KV blocks taken; return the state they lead to."""
        for request in plan.preempted:
            life = self._lives[request]
            self.event("preempt", t_ns, request, tokens=life.cached)
            self._free(t_ns, request)
            life.preempt(t_ns)
            self.write(request)
        for request in plan.admitted:
            self.admitted(request, t_ns)
        for chunk in plan.chunks:
            life = self._lives[chunk.request]
            blocks = self._blocks(context(chunk)) - life.blocks
            if blocks > 0:  # a step that is repeated writes over what it wrote before
                self._kv_blocks("kv_alloc", t_ns, chunk.request, blocks)
                life.blocks += blocks
        return self._state(scheduler)

    def step_range(self, plan: StepPlan) -> AbstractContextManager[object]:
        """Return the step's NVTX range."""
        name = "warmup" if self.warmup else phase_of(plan)
        return self.recorder.step_range(name, sum(chunk.tokens for chunk in plan.chunks))

    def executed(self, plan: StepPlan, state: EngineState, span: Span) -> None:
        """Write the step's row and what it put into and read from the KV cache."""
        step = step_row(
            self.recorder.next_step_id(),
            plan,
            state,
            span,
            warmup=self.warmup,
            window=self._window,
        )
        self.recorder.step(step)
        self.step_times.add(step)
        for chunk in plan.chunks:
            self._lives[chunk.request].cached = context(chunk)
        self._cached(plan, span.end_ns)

    def sampled(self, t_ns: int, tokens: Mapping[int, int]) -> None:
        """Note one generated token of each of these requests, the first time it is generated."""
        super().sampled(t_ns, {r: token for r, token in tokens.items() if not self._is_again(r)})

    def _is_again(self, request: int) -> bool:
        life = self._lives[request]
        return life.cached < life.input_tokens + life.output_tokens

    def finished(self, t_ns: int, requests: Collection[int], scheduler: Scheduling) -> None:
        """Note requests that are complete, and their blocks' return."""
        self._state(scheduler)
        for request in requests:
            self._free(t_ns, request)
            self.complete(request, t_ns)

    def _cached(self, plan: StepPlan, t_ns: int) -> None:
        """Note what a step put into the cache, read from it, and pushed out of a window."""
        decodes = [chunk for chunk in plan.chunks if not chunk.is_prefill]
        for chunk in plan.chunks:
            if chunk.is_prefill:
                self._kv("kv_init", t_ns, chunk.tokens, chunk.request)
        if decodes:
            read = sum(keys_read(c.start, c.tokens, self._window) for c in decodes)
            self.kv_traffic(t_ns, len(decodes), read, self._token_bytes)
        for chunk in plan.chunks:
            past = self._past_blocks(context(chunk)) - self._past_blocks(chunk.start)
            if past:
                self._kv_blocks("kv_free", t_ns, chunk.request, past)

    def _free(self, t_ns: int, request: int) -> None:
        life = self._lives[request]
        self._kv_blocks("kv_free", t_ns, request, life.blocks - self._past_blocks(life.cached))
        life.blocks = 0

    def _kv_blocks(self, kind: str, t_ns: int, request: int, blocks: int) -> None:
        self.event(kind, t_ns, request, blocks=blocks, bytes=blocks * self._block_bytes)

    def _kv(self, kind: str, t_ns: int, tokens: int, request: int | None = None) -> None:
        self.event(kind, t_ns, request, tokens=tokens, bytes=tokens * self._token_bytes)

    def _state(self, scheduler: Scheduling) -> EngineState:
        """Show the engine's state to the sampler, and return it."""
        self.recorder.set_engine_state(
            waiting=scheduler.waiting,
            running=scheduler.running,
            kv_used_bytes=scheduler.used_blocks * self._block_bytes,
            kv_total_bytes=self._kv_total_bytes,
        )
        return self.recorder.engine_state
