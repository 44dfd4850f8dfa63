"""What the engine's loop tells of a load while it serves it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from stallscope.analyzers.schedule import Scheduling, StepPlan
from stallscope.profiler.engine_sampler import EngineState
from stallscope.profiler.recorder import Recorder
from stallscope.runner.probe_rows import StepTimes
from stallscope.runner.step_row import Span


class LoadLog(Protocol):
    """Writes one load's rows."""

    recorder: Recorder
    step_times: StepTimes

    def arrived(self, request: int, t_ns: int, *, input_tokens: int) -> None: ...

    def scheduled(self, t_ns: int, plan: StepPlan, scheduler: Scheduling) -> EngineState: ...

    def step_range(self, plan: StepPlan) -> AbstractContextManager[object]: ...

    def executed(self, plan: StepPlan, state: EngineState, span: Span) -> None: ...

    def sampled(self, t_ns: int, tokens: Mapping[int, int]) -> None: ...

    def finished(self, t_ns: int, requests: Collection[int], scheduler: Scheduling) -> None: ...

    def failed(self) -> None: ...
