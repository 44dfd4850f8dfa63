"""Run the pure scheduler on the cost model: what a run would have done under other limits."""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from stallscope.analyzers.cost.operators import StepShape
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.schedule import SchedulerConfig, Scheduling, StepPlan
from stallscope.analyzers.static_schedule import scheduler_for
from stallscope.profiler.spec import attention_pairs, keys_read


@dataclass(frozen=True, slots=True)
class Load:
    """Requests as (arrival seconds, input, output tokens); `concurrency` closes the loop.

    In a closed loop arrivals are ignored: each of `concurrency` clients sends its next request
    when its last one ends. Each request stands for `times` alike, which run side by side.
    """

    requests: tuple[tuple[float, int, int], ...]
    concurrency: int | None = None
    times: int = 1


@dataclass(frozen=True, slots=True)
class Overhead:
    """Seconds of a step that the cost model's floor leaves out, as fitted on observed steps.

    Each step costs `per_step` plus `per_request` for each request and `per_token` for each prompt
    token in it.
    """

    per_step: float = 0.0
    per_request: float = 0.0
    per_token: float = 0.0


@dataclass(slots=True)
class Simulated:
    """What the simulated run did; seconds. `blocked` is queue time by the limit that held it."""

    duration_s: float = 0.0
    output_tokens: int = 0
    ttft_s: list[float] = field(default_factory=list)
    tpot_s: list[float] = field(default_factory=list)
    waited_s: float = 0.0
    in_system_s: float = 0.0
    times: int = 1  # requests that each of those stands for
    blocked: dict[str, float] = field(default_factory=dict)
    parts: dict[str, float] = field(default_factory=dict)

    @property
    def output_tokens_per_s(self) -> float:
        """Generated tokens per second."""
        return self.output_tokens / self.duration_s if self.duration_s else 0.0

    @property
    def mean_running(self) -> float:
        """Requests that ran at once, on average over the time."""
        return (self.in_system_s - self.waited_s) / self.duration_s if self.duration_s else 0.0

    @property
    def waited_per_request_s(self) -> float:
        """Seconds that a request waited, once or after preemptions, on average."""
        return self.waited_s / (self.times * len(self.ttft_s)) if self.ttft_s else 0.0

    @property
    def queued_share(self) -> float:
        """Waiting time over time in the system."""
        return self.waited_s / self.in_system_s if self.in_system_s else 0.0


def shape_of(plan: StepPlan, window: int | None = None) -> StepShape:
    """Return the work of a planned step, padding included."""
    chunks, padding = plan.chunks, plan.padding
    read = sum(keys_read(c.start, c.tokens, window) for c in chunks)
    pairs = sum(attention_pairs(c.start, c.tokens, window) for c in chunks)
    return StepShape(
        tokens=padding.tokens + sum(c.tokens for c in chunks),
        logit_rows=padding.logit_rows + sum(c.samples for c in chunks),
        kv_read_tokens=padding.context_tokens + read,
        attention_pairs=padding.pairs + pairs,
    )


class Watch(Protocol):
    """What is told of a simulated run as it goes; times in seconds."""

    def step(self, plan: StepPlan, scheduler: Scheduling, start_s: float, end_s: float) -> None: ...

    def finished(self, index: int, arrived_s: float, first_s: float, end_s: float) -> None: ...


class _Clients:
    """Feeds requests as they arrive."""

    def __init__(self, load: Load) -> None:
        self.load = load
        self.arrived: dict[int, float] = {}
        self._next = 0
        self._due: list[tuple[float, int]] = []
        if load.concurrency is None:
            self._due = [(r[0], i) for i, r in enumerate(load.requests)]
            heapq.heapify(self._due)
        else:
            for _ in range(load.concurrency):
                self.send(0.0)

    def send(self, now: float) -> None:
        """A client of a closed loop sends its next request."""
        if self.load.concurrency is not None and self._next < len(self.load.requests):
            heapq.heappush(self._due, (now, self._next))
            self._next += 1

    def arrive(self, now: float, scheduler: Scheduling) -> float:
        """Queue what is due; return the seconds that it has waited for the step to end."""
        late = 0.0
        while self._due and self._due[0][0] <= now:
            at, index = heapq.heappop(self._due)
            self.arrived[index] = at
            _, inputs, outputs = self.load.requests[index]
            scheduler.add(index, inputs, outputs)
            late += self.load.times * (now - at)
        return late

    @property
    def next_at(self) -> float | None:
        """When the next request comes."""
        return self._due[0][0] if self._due else None


def simulate(
    load: Load,
    config: SchedulerConfig,
    cost: CostModel,
    overhead: Overhead,
    watch: Watch | None = None,
) -> Simulated:
    """Simulate a load to its end; `watch` is told of each step and each request's end.

    Raises ValueError where a request could never run within `config`.
    """
    scheduler, clients = scheduler_for(config), _Clients(load)
    result = Simulated(times=load.times)
    first: dict[int, float] = {}
    now = 0.0
    while True:
        late = clients.arrive(now, scheduler)
        result.waited_s += late
        result.in_system_s += late
        plan = scheduler.schedule()
        if not plan.chunks:
            if clients.next_at is None:
                break
            now = clients.next_at
            continue
        seconds = _step_seconds(plan, load.times, cost, overhead, result)
        _account_queue(plan, scheduler, load.times, seconds, result)
        if watch is not None:
            watch.step(plan, scheduler, now, now + seconds)
        now += seconds
        for chunk in plan.chunks:
            if chunk.samples:
                result.output_tokens += load.times
                first.setdefault(chunk.request, now)
        for index in scheduler.complete(plan):
            if watch is not None:
                watch.finished(index, clients.arrived[index], first[index], now)
            _finish(result, clients, index, first[index], now)
    result.duration_s = now - min(clients.arrived.values(), default=0.0)
    return result


def _step_seconds(
    plan: StepPlan, times: int, cost: CostModel, o: Overhead, result: Simulated
) -> float:
    time = cost.step_time(shape_of(plan, cost.spec.sliding_window).times(times))
    prompt = times * sum(c.tokens for c in plan.chunks if c.is_prefill)
    rest = o.per_step + o.per_request * times * len(plan.chunks) + o.per_token * prompt
    for part, seconds in (
        ("bandwidth", time.weights + time.kv),
        ("compute", time.compute),
        ("interconnect", time.communication + time.transfer),
    ):
        result.parts[part] = result.parts.get(part, 0.0) + seconds
    return max(time.floor + rest, 1e-9)


def _account_queue(
    plan: StepPlan, scheduler: Scheduling, times: int, seconds: float, result: Simulated
) -> None:
    result.waited_s += times * scheduler.waiting * seconds
    result.in_system_s += times * scheduler.in_flight * seconds
    if scheduler.waiting and plan.blocked_by is not None:
        so_far = result.blocked.get(plan.blocked_by, 0.0)
        result.blocked[plan.blocked_by] = so_far + seconds


def _finish(result: Simulated, clients: _Clients, index: int, first_s: float, now: float) -> None:
    result.ttft_s.append(first_s - clients.arrived[index])
    outputs = clients.load.requests[index][2]
    if outputs > 1:
        result.tpot_s.append((now - first_s) / (outputs - 1))
    clients.send(now)


def steps_needed(requests: Sequence[tuple[float, int, int]], batch: int) -> float:
    """Estimate how many steps a simulation takes."""
    return sum(outputs for _, _, outputs in requests) / max(1, batch)
