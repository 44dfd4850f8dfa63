"""A closed loop played on the scheduler and written down as capture rows, for what-if tests."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from step_rows import TINY, request, step

from stallscope.analyzers.cost.kv_bytes import kv_bytes_per_token
from stallscope.analyzers.cost.operators import StepShape
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.schedule import Scheduler, SchedulerConfig, StepPlan
from stallscope.analyzers.step.budget import cost_steps, measured_steps
from stallscope.analyzers.whatif.replay import Replay, build_replay
from stallscope.analyzers.whatif.simulate import Overhead
from stallscope.profiler.capture import Capture, Request, Step
from stallscope.profiler.spec import Subject

COST = CostModel(TINY, "fp16", "fp16", Machine(1e9, 1e8, "datasheet"))


@dataclass
class Life:
    """What happened to one request, in milliseconds."""

    inputs: int
    outputs: int
    arrival: float
    admitted: float | None = None
    tokens: list[float] = field(default_factory=list)
    preemptions: int = 0
    preempted: float = 0.0
    out_since: float | None = None  # preempted and not yet back

    def admit(self, now: float) -> None:
        self.admitted = now if self.admitted is None else self.admitted
        self.preempted += now - self.out_since if self.out_since is not None else 0.0
        self.out_since = None

    def preempt(self, now: float) -> None:
        self.preemptions, self.out_since = self.preemptions + 1, now

    def row(self, number: int) -> Request:
        return request(
            number,
            arrival_ns=round(self.arrival * 1e6),
            admitted_ns=round((self.admitted or 0.0) * 1e6),
            first_token_ns=round(self.tokens[0] * 1e6),
            end_ns=round(self.tokens[-1] * 1e6),
            input_tokens=self.inputs,
            output_tokens=self.outputs,
            cached_tokens=0,
            preemptions=self.preemptions,
            preempted_ns=round(self.preempted * 1e6),
        )


def seconds_of(plan: StepPlan, truth: Overhead, cost: CostModel) -> float:
    """The floor of a plan's work, added up chunk by chunk, and its true overhead."""
    tokens = rows = keys = pairs = prompt = 0
    for chunk in plan.chunks:
        tokens += chunk.tokens
        rows += chunk.samples
        keys += chunk.start + chunk.tokens
        pairs += sum(chunk.start + i + 1 for i in range(chunk.tokens))
        prompt += chunk.tokens * chunk.is_prefill
    rest = truth.per_step + truth.per_request * len(plan.chunks) + truth.per_token * prompt
    return cost.step_time(StepShape(tokens, rows, keys, pairs)).floor + rest


def step_row(
    plan: StepPlan, start: float, end: float, block_bytes: int, scheduler: Scheduler
) -> Step:
    prefills = [c for c in plan.chunks if c.is_prefill]
    decodes = len(plan.chunks) - len(prefills)
    phase = "mixed" if prefills and decodes else "prefill" if prefills else "decode"
    return step(
        start,
        end,
        phase=phase,
        prefill_requests=len(prefills),
        prefill_tokens=sum(c.tokens for c in prefills),
        decode_requests=decodes,
        logit_rows=sum(c.samples for c in plan.chunks),
        context_tokens=sum(c.start + c.tokens for c in plan.chunks),
        attention_pairs=sum(c.start + i + 1 for c in plan.chunks for i in range(c.tokens)),
        kv_used_bytes=scheduler.used_blocks * block_bytes,
        kv_total_bytes=scheduler.config.num_blocks * block_bytes,
        waiting=scheduler.waiting,
        running=scheduler.running,
        blocked_by=plan.blocked_by,
    )


def play(
    lengths: list[tuple[int, int]],
    config: SchedulerConfig,
    *,
    clients: int,
    truth: Overhead,
    cost: CostModel = COST,
    arrivals: Sequence[float] = (),
) -> Capture:
    """Play requests of (input, output) tokens from `clients` that send one after the other.

    With `arrivals` (in milliseconds) they come at those times instead.
    """
    scheduler, now = Scheduler(config), 0.0
    left, lives, steps = deque(lengths), [], []
    due = deque(arrivals)
    block_bytes = config.block_size * kv_bytes_per_token(cost.spec, cost.kv_dtype)

    def send(at: float) -> None:
        if left:
            lives.append(Life(*left.popleft(), arrival=at))
            scheduler.add(len(lives) - 1, lives[-1].inputs, lives[-1].outputs)

    for _ in range(0 if arrivals else clients):
        send(now)
    while scheduler.in_flight or due:
        while due and due[0] <= now:
            send(due.popleft())
        plan = scheduler.schedule()
        if not plan.chunks:
            now = due[0]
            continue
        for index in plan.preempted:
            lives[index].preempt(now)
        for index in plan.admitted:
            lives[index].admit(now)
        end = now + 1e3 * seconds_of(plan, truth, cost)
        steps.append(step_row(plan, now, end, block_bytes, scheduler))
        now = end
        for chunk in plan.chunks:
            if chunk.samples:
                lives[chunk.request].tokens.append(now)
        for _ in scheduler.complete(plan):
            if not arrivals:
                send(now)
    subject = Subject(
        model=cost.spec,
        dtype=cost.dtype,
        kv_dtype=cost.kv_dtype,
        max_num_seqs=config.max_num_seqs,
        max_num_batched_tokens=config.max_num_batched_tokens,
        chunked_prefill=config.chunked_prefill,
        block_size=config.block_size,
        concurrency=None if arrivals else clients,
    )
    rows = tuple(life.row(i) for i, life in enumerate(lives))
    return Capture(subject, steps=tuple(steps), requests=rows)


def tokens_per_s(capture: Capture) -> float:
    """Generated tokens over the time from the first step to the last."""
    seconds = (capture.steps[-1].end_ns - capture.steps[0].start_ns) * 1e-9
    return sum(r.output_tokens for r in capture.requests) / seconds


def replay_of(capture: Capture, cost: CostModel = COST, measured: float | None = None) -> Replay:
    costs = cost_steps(measured_steps(capture), cost)
    replay = build_replay(capture, costs, cost, measured or tokens_per_s(capture))
    assert replay is not None
    return replay


def back_to_back(*rows: tuple[float, int]) -> list[Step]:
    """Decode steps of (milliseconds, batch) without gaps."""
    found, now = [], 0.0
    for ms, batch in rows:
        work = {"context_tokens": batch, "attention_pairs": batch}
        found.append(step(now, now + ms, decode_requests=batch, **work))
        now += ms
    return found
