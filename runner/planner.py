"""What the engine asks of whoever plans its steps."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from stallscope.analyzers.schedule import StepPlan


class Planner(Protocol):
    """Plans one step after the other; the continuous-batching scheduler is one."""

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
