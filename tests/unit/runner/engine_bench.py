"""A recorder, a fake clock and an executor that takes time by rule, to run loads on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from stallscope.analyzers.schedule import Scheduler, SchedulerConfig, Scheduling
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.recorder import Recorder
from stallscope.runner.batch import Chunk, StepResult
from stallscope.runner.engine import Engine, Generation, Hooks, Outcome
from stallscope.runner.engine_log import EngineLog
from stallscope.runner.workload import RequestSize, Workload

MS = 1_000_000
TOKEN_BYTES = 10


class Clock:
    """Moves only when somebody works or sleeps."""

    def __init__(self) -> None:
        self.ns = 100 * MS

    def __call__(self) -> int:
        return self.ns

    def sleep(self, seconds: float) -> None:
        self.ns += round(seconds * 1e9)


@dataclass
class TimedExecutor:
    """Takes 5 ms of forward time, 1 ms per token on top, and 2 ms besides for sampling."""

    clock: Clock
    kv_bytes_per_token: int = TOKEN_BYTES
    fails_at_step: int | None = None
    error: Exception | None = None
    answer: Callable[[Chunk], int] = lambda chunk: 42

    def __post_init__(self) -> None:
        self.seen: list[tuple[Chunk, ...]] = []
        self.freed: list[int] = []

    def execute(self, chunks: Sequence[Chunk]) -> StepResult:
        if self.error is not None and len(self.seen) == self.fails_at_step:
            raise self.error
        self.seen.append(tuple(chunks))
        forward_ns = (5 + sum(len(chunk.token_ids) for chunk in chunks)) * MS
        self.clock.ns += forward_ns + 2 * MS
        tokens = {chunk.request: self.answer(chunk) for chunk in chunks if chunk.samples}
        return StepResult(tokens, forward_ns)

    def free(self, request: int) -> None:
        self.freed.append(request)


@dataclass
class Bench:
    """A recorder, a clock and an executor to run loads on."""

    path: Path
    config: SchedulerConfig
    eos: frozenset[int] = frozenset()
    before_step: Callable[[], None] | None = None
    fetch: Callable[[], int] | None = None
    planner: Callable[[SchedulerConfig, Clock], Scheduling] = lambda config, clock: Scheduler(
        config
    )

    def __post_init__(self) -> None:
        self.clock = Clock()
        self.executor = TimedExecutor(self.clock)
        self.recorder = Recorder(self.path, clock=self.clock, sample_hz=0)
        self.outcome: Outcome | None = None

    def run(self, *workloads: Workload, warmup: bool = False) -> Capture:
        engine = Engine(
            self.planner(self.config, self.clock),
            self.executor,
            generation=Generation(vocab_size=50, eos=self.eos),
            hooks=Hooks(
                clock=self.clock,
                sleep=self.clock.sleep,
                before_step=self.before_step,
                fetch=self.fetch,
            ),
        )
        with self.recorder as recorder:
            for number, workload in enumerate(workloads):
                log = EngineLog(
                    recorder,
                    self.config,
                    token_bytes=TOKEN_BYTES,
                    warmup=warmup and number == 0,
                )
                self.outcome = engine.run(workload, log)
        return read_capture(self.path)


def sizes(*pairs: tuple[int, int]) -> tuple[RequestSize, ...]:
    return tuple(RequestSize(*pair) for pair in pairs)


def events(capture: Capture, *kinds: str) -> list[Event]:
    return [event for event in capture.events if event.kind in kinds]
