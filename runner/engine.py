"""The engine's loop: take arrivals, schedule, execute, keep the books."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from stallscope.analyzers.schedule import ScheduledChunk, Scheduling, StepPlan
from stallscope.profiler.recorder import Recorder
from stallscope.runner.batch import Chunk, Executor
from stallscope.runner.load_log import LoadLog
from stallscope.runner.out_of_memory import AllocationFailed
from stallscope.runner.step_row import Span
from stallscope.runner.workload import Arrival, Workload, prompt

PROGRESS_EVERY_NS = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Hooks:
    """The engine's touch with the world; tests put a fake clock and a planted delay here.

    `fetch` brings what a step needs over a link, such as weights that lie elsewhere, and returns
    its bytes; it is recorded as a copy that the step waits for.
    """

    clock: Callable[[], int] = time.perf_counter_ns
    sleep: Callable[[float], None] = time.sleep
    before_step: Callable[[], None] | None = None
    fetch: Callable[[], int] | None = None
    progress: Callable[[str], None] | None = None


@dataclass(frozen=True, slots=True)
class Generation:
    """How prompts are made up and what ends an output before its length."""

    vocab_size: int
    seed: int = 0
    eos: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a load ended."""

    finished: int
    out_of_memory: bool = False


def record_oom(recorder: Recorder, failure: AllocationFailed) -> None:
    """Record a refused allocation and the stage it ended."""
    recorder.event(
        "oom", stage=failure.stage, bytes=failure.bytes_requested, message=failure.message
    )


class Engine:
    """Runs loads on an executor.

    Steps abut: each begins where the last one ended, unless the engine was idle in between.
    """

    def __init__(
        self,
        scheduler: Scheduling,
        executor: Executor,
        *,
        generation: Generation,
        hooks: Hooks | None = None,
    ) -> None:
        self._scheduler = scheduler
        self._executor = executor
        self._generation = generation
        self._hooks = hooks or Hooks()
        self._token_ids: dict[int, list[int]] = {}
        self._finished = 0
        self._next_progress_ns = 0

    def run(self, workload: Workload, log: LoadLog) -> Outcome:
        """Serve the load to its end. An allocation that fails ends it as an `oom` event."""
        self._finished = 0
        try:
            self._serve(workload, log)
        except AllocationFailed as failure:
            record_oom(log.recorder, failure)
            log.failed()
            return Outcome(self._finished, out_of_memory=True)
        except Exception:
            log.failed()
            raise
        return Outcome(self._finished)

    def _serve(self, workload: Workload, log: LoadLog) -> None:
        now = origin = self._hooks.clock()
        while True:
            for arrival in workload.due(now - origin, self._finished):
                self._accept(arrival, origin + arrival.t_ns, log)
            if self._scheduler.in_flight:
                now = self._step(now, log)
                self._tell(now, len(workload.sizes))
                continue
            next_ns = workload.next_arrival_ns()
            if next_ns is None:
                return
            now = self._wait_until(origin + next_ns)

    def _accept(self, arrival: Arrival, t_ns: int, log: LoadLog) -> None:
        size = arrival.size
        self._scheduler.add(arrival.request, size.input_tokens, size.output_tokens)
        self._token_ids[arrival.request] = prompt(
            arrival.request,
            size.input_tokens,
            vocab_size=self._generation.vocab_size,
            seed=self._generation.seed,
        )
        log.arrived(arrival.request, t_ns, input_tokens=size.input_tokens)

    def _step(self, start_ns: int, log: LoadLog) -> int:
        if self._hooks.before_step is not None:
            self._hooks.before_step()
        if self._hooks.fetch is not None:
            self._fetch(self._hooks.fetch, log.recorder)
        plan = self._scheduler.schedule()
        state = log.scheduled(start_ns, plan, self._scheduler)
        for request in plan.preempted:
            self._executor.free(request)
        chunks = [self._chunk(chunk) for chunk in plan.chunks]
        with log.step_range(plan):
            result = self._executor.execute(chunks)
            finished = self._scheduler.complete(plan, self._stopped(result.tokens))
            self._append(plan, result.tokens)
            self._release(finished)
            end_ns = self._hooks.clock()
        log.executed(plan, state, Span(start_ns, end_ns, result.forward_ns))
        log.sampled(end_ns, result.tokens)
        log.finished(end_ns, finished, self._scheduler)
        return end_ns

    def _fetch(self, fetch: Callable[[], int], recorder: Recorder) -> None:
        start_ns = self._hooks.clock()
        size_bytes = fetch()
        recorder.add_copy(size_bytes, start_ns, self._hooks.clock() - start_ns)

    def _chunk(self, chunk: ScheduledChunk) -> Chunk:
        tokens = self._token_ids[chunk.request][chunk.start : chunk.start + chunk.tokens]
        return Chunk(chunk.request, tokens, chunk.start, chunk.samples)

    def _append(self, plan: StepPlan, tokens: Mapping[int, int]) -> None:
        """Keep what was generated; a step that is repeated leaves its tokens as they are."""
        for chunk in plan.chunks:
            known = self._token_ids[chunk.request]
            if chunk.samples and chunk.start + chunk.tokens == len(known):
                known.append(tokens[chunk.request])

    def _stopped(self, tokens: dict[int, int]) -> set[int]:
        return {request for request, token in tokens.items() if token in self._generation.eos}

    def _release(self, finished: Sequence[int]) -> None:
        for request in finished:
            self._executor.free(request)
            del self._token_ids[request]
        self._finished += len(finished)

    def _wait_until(self, t_ns: int) -> int:
        while (now := self._hooks.clock()) < t_ns:
            self._hooks.sleep((t_ns - now) / 1e9)
        return now

    def _tell(self, now_ns: int, total: int) -> None:
        if self._hooks.progress is None or now_ns < self._next_progress_ns:
            return
        self._next_progress_ns = now_ns + PROGRESS_EVERY_NS
        waiting, running = self._scheduler.waiting, self._scheduler.running
        self._hooks.progress(
            f"{self._finished} of {total} requests done, {running} running, {waiting} waiting"
        )
