"""A plan's simulated load as a capture, to be judged as a recorded run is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from stallscope.analyzers.cost.likely import likely_model
from stallscope.analyzers.cost.roofline import CostModel, kv_bytes_on_rank
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.plan.memory import BLOCK
from stallscope.analyzers.plan.notes import MOST_JUDGED
from stallscope.analyzers.plan.options import PlanOptions, subject_of
from stallscope.analyzers.plan.predictions import simulated
from stallscope.analyzers.plan.result import MemoryMap, PredictedLimit
from stallscope.analyzers.schedule import Scheduler, Scheduling, StepPlan
from stallscope.analyzers.whatif.simulate import Overhead, shape_of
from stallscope.profiler.capture import Capture, Request, Step

_NS = 1e9


class _Record:
    """Writes a simulated run down as an engine would."""

    def __init__(self, cost: CostModel, overhead: Overhead) -> None:
        self._cost = cost
        self._overhead = overhead
        self._admitted: dict[int, float] = {}
        self._preemptions: dict[int, int] = {}
        self._out_since: dict[int, float] = {}
        self._out_s: dict[int, float] = {}
        self._steps: list[Step] = []
        self._ends: list[tuple[int, float, float, float]] = []

    def step(self, plan: StepPlan, scheduler: Scheduling, start_s: float, end_s: float) -> None:
        for request in plan.preempted:
            self._preemptions[request] = self._preemptions.get(request, 0) + 1
            self._out_since[request] = start_s
        for request in plan.admitted:
            self._admitted.setdefault(request, start_s)
            since = self._out_since.pop(request, start_s)
            self._out_s[request] = self._out_s.get(request, 0.0) + start_s - since
        self._steps.append(self._row(plan, scheduler, start_s, end_s))

    def _row(self, plan: StepPlan, scheduler: Scheduling, start_s: float, end_s: float) -> Step:
        prefills = [c for c in plan.chunks if c.is_prefill]
        decodes = len(plan.chunks) - len(prefills)
        shape = shape_of(plan, self._cost.spec.sliding_window)
        host_s = self._overhead.per_step + self._overhead.per_request * len(plan.chunks)
        block_bytes = BLOCK * kv_bytes_on_rank(self._cost)
        total = scheduler.config.num_blocks if isinstance(scheduler, Scheduler) else None
        start_ns, end_ns = round(start_s * _NS), round(end_s * _NS)
        host_ns = round(host_s * _NS)
        return Step(
            id=len(self._steps),
            rank=0,
            start_ns=start_ns,
            end_ns=end_ns,
            device_ns=end_ns - start_ns - host_ns,
            host_ns=host_ns,
            phase="mixed" if prefills and decodes else "prefill" if prefills else "decode",
            warmup=False,
            prefill_requests=len(prefills),
            prefill_tokens=sum(c.tokens for c in prefills),
            decode_requests=decodes,
            context_tokens=shape.kv_read_tokens,
            waiting=scheduler.waiting,
            running=scheduler.running,
            kv_used_bytes=scheduler.used_blocks * block_bytes,
            kv_total_bytes=None if total is None else total * block_bytes,
            attention_pairs=shape.attention_pairs,
            logit_rows=shape.logit_rows,
            blocked_by=plan.blocked_by,
        )

    def finished(self, index: int, arrived_s: float, first_s: float, end_s: float) -> None:
        self._ends.append((index, arrived_s, first_s, end_s))

    def served_s(self, clients: int) -> float:
        """Return until when every client had a request in the system; after it the load ends."""
        ends = sorted(end_s for *_, end_s in self._ends)
        return ends[-clients - 1] if len(ends) > clients else ends[-1]

    def steps(self, until_s: float) -> tuple[Step, ...]:
        """Return the steps of the served time."""
        return tuple(s for s in self._steps if s.start_ns < round(until_s * _NS))

    def requests(self, options: PlanOptions, until_s: float) -> Iterator[Request]:
        """Yield the requests of the served time; the last have not ended in it."""

        def at(time_s: float) -> int | None:
            return round(time_s * _NS) if time_s <= until_s else None

        for index, arrived_s, first_s, end_s in sorted(self._ends):
            if arrived_s >= until_s:
                continue
            is_over = end_s <= until_s
            yield Request(
                id=index,
                arrival_ns=round(arrived_s * _NS),
                admitted_ns=at(self._admitted[index]),
                first_token_ns=at(first_s),
                end_ns=at(end_s),
                input_tokens=options.input_tokens,
                cached_tokens=0,
                output_tokens=options.output_tokens if is_over else 0,
                preemptions=self._preemptions.get(index, 0),
                preempted_ns=round(self._out_s.get(index, 0.0) * _NS) if is_over else None,
                status="finished" if is_over else "running",
            )


def predicted_run(options: PlanOptions, memory: MemoryMap, cost: CostModel) -> Capture | None:
    """Play the plan's load and write it down; None where nothing runs, or too many to tell."""
    model, overhead = likely_model(cost)
    record = _Record(model, overhead)
    if options.concurrency > MOST_JUDGED:
        return None
    if simulated(options, memory, model, overhead, record) is None:
        return None
    until_s = record.served_s(options.concurrency)
    subject = replace(
        subject_of(options),
        max_num_seqs=options.concurrency,
        chunked_prefill=True,
        block_size=BLOCK,
    )
    return Capture(
        subject,
        steps=record.steps(until_s),
        requests=tuple(record.requests(options, until_s)),
        meta={"load_generator": "stallscope plan"},
    )


def predicted_limit(
    options: PlanOptions, memory: MemoryMap, cost: CostModel | None
) -> PredictedLimit | None:
    """Judge the predicted run as a recorded one is judged."""
    capture = predicted_run(options, memory, cost) if cost is not None else None
    if capture is None:
        return None
    found = diagnose(capture).verdict
    return PredictedLimit(
        bottleneck=found.bottleneck,
        load=found.load,
        phase=found.phase,
        between=found.between,
        next_limit=found.next_limit,
        limits=found.limits,
        sentence=found.sentence,
    )
