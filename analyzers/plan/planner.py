"""Plan a model on a device."""

from __future__ import annotations

from dataclasses import replace

from stallscope.analyzers.cost.arithmetic import ffn_share, num_parameters
from stallscope.analyzers.cost.calibration import NoCostModel, build_cost_model
from stallscope.analyzers.cost.expected import ExpectedModel
from stallscope.analyzers.cost.likely import likely_model
from stallscope.analyzers.cost.operators import decode_shape
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.cost.speculation import Speculation, speculate
from stallscope.analyzers.kv_life import kv_rows
from stallscope.analyzers.plan.choices import compare_choices
from stallscope.analyzers.plan.launching import launches
from stallscope.analyzers.plan.links import compare_links
from stallscope.analyzers.plan.memory import memory_map
from stallscope.analyzers.plan.notes import plan_notes, unpredicted
from stallscope.analyzers.plan.options import PlanOptions, drafting, subject_of
from stallscope.analyzers.plan.predicted_run import predicted_limit
from stallscope.analyzers.plan.predictions import predictions
from stallscope.analyzers.plan.result import Launches, MemoryMap, Plan, Sweep
from stallscope.analyzers.plan.steps import (
    mean_context,
    phase_operators,
    phase_plan,
    phase_shapes,
)
from stallscope.analyzers.plan.sweep import sweep
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import NotObservable


def plan(options: PlanOptions) -> Plan:
    """Plan a model on a device; without a device only memory, KV and FLOP/byte counts."""
    subject = subject_of(options)
    model = build_cost_model(Capture(subject=subject))
    cost = model if isinstance(model, CostModel) else None
    memory = memory_map(options, subject)
    shapes = phase_shapes(options)
    missing = (
        (NotObservable("times and predictions", model.reason, model.how),)
        if isinstance(model, NoCostModel)
        else ()
    )
    machine = cost.machine if cost is not None else None
    predicted = predictions(options, memory, cost)
    return Plan(
        subject=subject,
        parameters=num_parameters(options.model),
        ffn_share=ffn_share(options.model),
        memory=memory,
        kv_table=kv_rows(
            options.model,
            subject.kv_dtype or "",
            options.kv_lengths,
            ranks=options.num_devices,
        ),
        ridge=machine.peak_flops / machine.bytes_per_s if machine is not None else None,
        phases=tuple(phase_plan(p, what, s, subject, cost) for p, what, s in shapes),
        operators=tuple(row for p, _, s in shapes for row in phase_operators(p, s, subject, cost)),
        notes=plan_notes(options, memory, cost, predicted),
        not_observable=(*missing, *unpredicted(options, memory, cost)),
        choices=compare_choices(options, options.choices) if len(options.choices) > 1 else (),
        sweep=_sweep(options, memory, cost),
        limit=predicted_limit(options, memory, cost),
        calibration=machine.calibration if machine is not None else None,
        speculation=_speculation(options, memory, cost),
        links=compare_links(options),
        launches=_launches(options, memory, cost),
        **predicted,
    )


def _sweep(options: PlanOptions, memory: MemoryMap, cost: CostModel | None) -> Sweep | None:
    if cost is None or not options.sweep:
        return None
    return sweep(options, cost, memory)


def _launches(options: PlanOptions, memory: MemoryMap, cost: CostModel | None) -> Launches | None:
    """Say what launching a decode step's kernels costs, at the plan's load as far as it fits."""
    most = memory.max_concurrency
    if cost is None or most == 0:
        return None
    model, overhead = likely_model(cost)
    if not isinstance(model, ExpectedModel):
        return None
    batch = options.concurrency if most is None else min(options.concurrency, most)
    window = options.model.sliding_window
    return launches(model, decode_shape(batch, mean_context(options), window=window), overhead)


def _speculation(
    options: PlanOptions, memory: MemoryMap, cost: CostModel | None
) -> Speculation | None:
    """Price speculative decoding at the plan's load, as far as it fits."""
    most = memory.max_concurrency
    if cost is None or options.drafted is None or most == 0:
        return None
    model, overhead = likely_model(cost)
    drafts, _ = drafting(options)
    batch = options.concurrency if most is None else min(options.concurrency, most)
    return speculate(
        model,
        batch=batch,
        context=mean_context(options),
        drafted=options.drafted,
        acceptance=options.acceptance,
        draft=None if drafts is None else replace(model, spec=drafts),
        host_s=overhead.per_step + overhead.per_request * batch,
    )
