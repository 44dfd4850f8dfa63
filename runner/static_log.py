"""Turns what a static batch does into capture rows, by what the forward pass was given."""

from __future__ import annotations

from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext
from typing import Literal

from stallscope.analyzers.schedule import Scheduling, StepPlan
from stallscope.profiler.capture import Step
from stallscope.profiler.engine_sampler import EngineState
from stallscope.profiler.recorder import Recorder
from stallscope.runner.forward_watch import ForwardPass
from stallscope.runner.hf_executor import HfExecutor
from stallscope.runner.hf_model import CacheSize
from stallscope.runner.pass_row import pass_row
from stallscope.runner.probe_rows import StepTimes
from stallscope.runner.request_log import RequestLog
from stallscope.runner.step_row import Span

_NO_CACHE = CacheSize(0, 0)


class StaticLog(RequestLog):
    """Writes one load's rows; KV is counted in bytes of the cache's own tensors."""

    def __init__(self, recorder: Recorder, executor: HfExecutor, *, warmup: bool = False) -> None:
        super().__init__(recorder, warmup=warmup)
        self.step_times = StepTimes()
        self._executor = executor
        self._held = _NO_CACHE

    def step_range(self, plan: StepPlan) -> AbstractContextManager[object]:
        """Leave the NVTX range to the forward pass, which knows its phase."""
        self._executor.watch.mark = self._mark
        return nullcontext()

    def scheduled(self, t_ns: int, plan: StepPlan, scheduler: Scheduling) -> EngineState:
        """Note admissions; return the state they lead to."""
        for request in plan.admitted:
            self.admitted(request, t_ns)
        return self._state(scheduler)

    def executed(self, plan: StepPlan, state: EngineState, span: Span) -> None:
        """Write the step's row and what it put into and read from the KV cache."""
        seen, cache = self._executor.watch.last(), self._executor.cache
        state = EngineState(state.waiting, state.running, cache.bytes, None)
        step = pass_row(
            self.recorder.next_step_id(),
            seen,
            state,
            span,
            warmup=self.warmup,
            blocked_by=plan.blocked_by,
            window=self._executor.model.spec.sliding_window,
        )
        self.recorder.step(step)
        self.step_times.add(step)
        self._grown(span.end_ns, cache)
        if seen.phase == "prefill":
            self._prompts(plan, step)
        else:
            self._token_a_row(seen, step)

    def finished(self, t_ns: int, requests: Collection[int], scheduler: Scheduling) -> None:
        """Note requests that are complete; the cache returns with the last of the batch."""
        for request in requests:
            self.complete(request, t_ns)
        if not scheduler.running:
            self._kv("kv_free", t_ns, self._held.tokens, bytes=self._held.bytes)
            self._held = _NO_CACHE
        self._state(scheduler)

    def _mark(
        self, phase: Literal["prefill", "decode"], tokens: int
    ) -> AbstractContextManager[object]:
        return self.recorder.step_range("warmup" if self.warmup else phase, tokens)

    def _grown(self, t_ns: int, cache: CacheSize) -> None:
        grown = cache.bytes - self._held.bytes
        if grown:  # a sliding window's tensors stop growing
            self._kv("kv_alloc", t_ns, cache.tokens - self._held.tokens, bytes=grown)
        self._held = cache

    def _prompts(self, plan: StepPlan, step: Step) -> None:
        for chunk in plan.chunks:
            self._kv("kv_init", step.end_ns, chunk.tokens, request=chunk.request)
        padding = step.padded_tokens or 0
        if padding:
            self._kv("kv_init", step.end_ns, padding, padding=padding)

    def _token_a_row(self, seen: ForwardPass, step: Step) -> None:
        self._kv("kv_append", step.end_ns, seen.rows, padding=step.padded_tokens or 0)
        padding = step.padded_context_tokens or 0
        read = (step.context_tokens or 0) + padding
        self._kv("kv_read", step.end_ns, read, padding=padding)

    def _kv(
        self,
        kind: str,
        t_ns: int,
        tokens: int,
        *,
        bytes: int | None = None,
        request: int | None = None,
        padding: int = 0,
    ) -> None:
        size = tokens * self._executor.kv_bytes_per_token if bytes is None else bytes
        self.event(kind, t_ns, request, tokens=tokens, bytes=size, padding=padding)

    def _state(self, scheduler: Scheduling) -> EngineState:
        self.recorder.set_engine_state(
            waiting=scheduler.waiting,
            running=scheduler.running,
            kv_used_bytes=self._held.bytes,
        )
        return self.recorder.engine_state
