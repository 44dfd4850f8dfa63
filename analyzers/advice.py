"""Which advice goes with a verdict: after a refused allocation, on lone kernels, or by class."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.coupling.nodes import NODES
from stallscope.analyzers.kernel_mix import KernelMix, lone_mix
from stallscope.analyzers.kv_copies import more_ranks, one_copy
from stallscope.analyzers.load.in_front import keeps_up
from stallscope.analyzers.load.kv_cliff import fewer_at_once
from stallscope.analyzers.load.starved import decode_first, useless_to_the_starved
from stallscope.analyzers.paged_out import room_on_windows, useless_on_windows
from stallscope.analyzers.prepared import Run
from stallscope.analyzers.refusals import buffer_of, memory_failure, refused_at
from stallscope.analyzers.result import Remedy, Verdict, WontHelp
from stallscope.analyzers.whatif.kernel_remedies import (
    UNTOLD,
    kernel_remedies,
    kernels_wont_help,
)
from stallscope.analyzers.whatif.out_of_memory import (
    remedies_after_refusal,
    wont_help_after_refusal,
)
from stallscope.analyzers.whatif.queue_remedies import (
    RESERVE,
    WONT_HELP_A_QUEUE,
    queue_remedies,
)
from stallscope.analyzers.whatif.remedies import remedies_for, wont_help
from stallscope.analyzers.whatif.replay import Replay, WhatIf
from stallscope.profiler.evidence import Measure, NotObservable


def _deciding_mix(run: Run, verdict: Verdict) -> KernelMix | None:
    """Return the kernels where they alone can say what to do."""
    return lone_mix(run.capture) if verdict.bottleneck in ("bandwidth", "compute") else None


def remedies_of(
    run: Run,
    verdict: Verdict,
    measures: Sequence[Measure],
    replay: Replay | None,
    sampled: WhatIf | None,
) -> tuple[Remedy, ...]:
    """List what helps against what limits the run.

    `sampled` is what raising the sequence cap would buy where no replay tells.
    """
    refused = memory_failure(run.capture)
    if refused is not None:
        return remedies_after_refusal(refused_at(refused), buffer_of(refused))
    mix = _deciding_mix(run, verdict)
    if mix is not None:
        return tuple(kernel_remedies(verdict.bottleneck, mix))
    if verdict.bottleneck == "host" and not keeps_up({m.name: m for m in measures}, run.thresholds):
        return queue_remedies("front", replay, run.thresholds)
    if verdict.bottleneck == "scheduling" and verdict.limit is None:
        turns = decode_first(run.capture, run.span)
        if turns:
            return turns
    on_windows = room_on_windows(run.capture, run.thresholds)
    if on_windows and verdict.bottleneck == "capacity":
        return on_windows
    shared = one_copy(run.capture) if verdict.bottleneck == "capacity" else ()
    if shared and run.checked.decision is not None:
        return shared  # of a start: nothing is known of what will be asked
    listed = remedies_for(
        verdict.bottleneck,
        limit=verdict.limit,
        replay=replay,
        sampled=sampled,
        costs=run.costs,
        cost=run.cost,
        tokens_per_s=run.throughput.output_tokens_per_s,
        t=run.thresholds,
        kv_dtype=run.capture.subject.kv_dtype,
        found={m.name: m for m in measures},
    )
    fewer = fewer_at_once(run.capture) if verdict.bottleneck == "capacity" else ()
    reserved = any(link.cause == NODES["reserved"] for link in verdict.chain)
    return (*((RESERVE,) if reserved else ()), *fewer, *shared, *listed)


def wont_help_of(run: Run, verdict: Verdict, measures: Sequence[Measure]) -> tuple[WontHelp, ...]:
    """Name popular fixes that would not help."""
    refused = memory_failure(run.capture)
    if refused is not None:
        return wont_help_after_refusal(refused_at(refused))
    mix = _deciding_mix(run, verdict)
    if mix is not None:
        return kernels_wont_help(verdict.bottleneck, mix)
    if verdict.bottleneck == "host" and not keeps_up({m.name: m for m in measures}, run.thresholds):
        return WONT_HELP_A_QUEUE["front"]
    if verdict.bottleneck == "scheduling" and verdict.limit is None:
        starved = useless_to_the_starved(run.capture, run.span)
        if starved:
            return starved
    on_windows = useless_on_windows(run.capture, run.thresholds)
    if on_windows and verdict.bottleneck == "capacity":
        return on_windows
    useless = wont_help(verdict.bottleneck, verdict.limit, {m.name: m for m in measures})
    return (*(more_ranks(run.capture) if verdict.bottleneck == "capacity" else ()), *useless)


def untold(run: Run, verdict: Verdict) -> tuple[NotObservable, ...]:
    """Say what to add where advice could go by the kernels alone."""
    return (UNTOLD,) if _deciding_mix(run, verdict) is not None else ()
