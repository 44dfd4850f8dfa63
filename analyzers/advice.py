"""Which advice goes with a verdict: what helps, what does not, and what would tell more.

One ladder decides all three, so that they speak of the same cause.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.coupling.nodes import NODES
from stallscope.analyzers.kernel_mix import lone_mix
from stallscope.analyzers.kv_copies import more_ranks, one_copy
from stallscope.analyzers.load.in_front import keeps_up
from stallscope.analyzers.load.kv_cliff import fewer_at_once
from stallscope.analyzers.load.starved import decode_first, useless_to_the_starved
from stallscope.analyzers.paged_out import room_on_windows, useless_on_windows
from stallscope.analyzers.prepared import Run
from stallscope.analyzers.refusals import memory_failure
from stallscope.analyzers.result import Remedy, Verdict, WontHelp
from stallscope.analyzers.step.clocks import clock_ratios
from stallscope.analyzers.step.core_wait import FINDING as CORES_TAKEN
from stallscope.analyzers.step.slowdown import main_slowdown
from stallscope.analyzers.whatif.clock_remedies import clocks_back
from stallscope.analyzers.whatif.core_remedies import CORES_WONT_HELP, cores_back
from stallscope.analyzers.whatif.kernel_remedies import (
    UNTOLD,
    kernel_remedies,
    kernels_wont_help,
)
from stallscope.analyzers.whatif.out_of_memory import memory_advice
from stallscope.analyzers.whatif.queue_remedies import (
    RESERVE,
    WONT_HELP_A_QUEUE,
    queue_remedies,
)
from stallscope.analyzers.whatif.remedies import remedies_for, wont_help
from stallscope.analyzers.whatif.replay import Replay, WhatIf
from stallscope.profiler.evidence import Measure, NotObservable


@dataclass(frozen=True, slots=True)
class Advice:
    """What helps, popular fixes that would not, and what to add where more could be told."""

    remedies: tuple[Remedy, ...]
    wont_help: tuple[WontHelp, ...]
    untold: tuple[NotObservable, ...] = ()


@dataclass(frozen=True, slots=True)
class _Case:
    """What advice goes by; `sampled` is what a higher sequence cap buys where no replay tells."""

    run: Run
    verdict: Verdict
    found: dict[str, Measure]
    replay: Replay | None
    sampled: WhatIf | None

    @property
    def is_capacity(self) -> bool:
        return self.verdict.bottleneck == "capacity"


def advise(
    run: Run,
    verdict: Verdict,
    measures: Sequence[Measure],
    replay: Replay | None,
    sampled: WhatIf | None,
) -> Advice:
    """Advise against what limits the run: by the first thing on the ladder that is so.

    `sampled` is what raising the sequence cap would buy where no replay tells.
    """
    case = _Case(run, verdict, {m.name: m for m in measures}, replay, sampled)
    ladder = (
        _refused,
        _of_kernels,
        _in_front,
        _starved,
        _cores_taken,
        _slow_clocks,
        _on_windows,
        _copied,
    )
    return next((advice for rung in ladder if (advice := rung(case))), None) or _of_class(case)


def _refused(case: _Case) -> Advice | None:
    """An allocation was refused, or a start failed for memory."""
    event = memory_failure(case.run.capture)
    if event is None:
        return None
    advice = memory_advice(event, case.run.capture, case.run.cost)
    return Advice(advice.remedies, advice.wont_help)


def _of_kernels(case: _Case) -> Advice | None:
    """The kernels alone can say what to do."""
    bottleneck = case.verdict.bottleneck
    mix = lone_mix(case.run.capture) if bottleneck in ("bandwidth", "compute") else None
    if mix is None:
        return None
    remedies = tuple(kernel_remedies(bottleneck, mix))
    return Advice(remedies, kernels_wont_help(bottleneck, mix), (UNTOLD,))


def _in_front(case: _Case) -> Advice | None:
    """Requests queue for a frontend that does not keep up."""
    t = case.run.thresholds
    if case.verdict.bottleneck != "host" or keeps_up(case.found, t):
        return None
    return Advice(queue_remedies("front", case.replay, t), WONT_HELP_A_QUEUE["front"])


def _starved(case: _Case) -> Advice | None:
    """Running requests do not get their turn."""
    if case.verdict.bottleneck != "scheduling" or case.verdict.limit is not None:
        return None
    remedies = decode_first(case.run.capture, case.run.span)
    return _where(remedies, useless_to_the_starved(case.run.capture, case.run.span))


def _cores_taken(case: _Case) -> Advice | None:
    """Others have the cores that the step needs."""
    if case.verdict.finding != CORES_TAKEN:
        return None
    return Advice(cores_back(case.found), CORES_WONT_HELP)


def _slow_clocks(case: _Case) -> Advice | None:
    """The device runs below its clocks, or may: a reason for it was sampled."""
    verdict, slowdown = case.verdict, main_slowdown(case.run.capture)
    if verdict.finding == "slow-clocks" and clock_ratios(case.run.capture) is not None:
        return Advice(clocks_back(slowdown.kind if slowdown else None), _useless(case))
    is_open = verdict.finding == "step-unsettled" and "device" in verdict.between
    return Advice(clocks_back(slowdown.kind), ()) if is_open and slowdown else None


def _on_windows(case: _Case) -> Advice | None:
    """Windows put what did not fit elsewhere."""
    if not case.is_capacity:
        return None
    capture, t = case.run.capture, case.run.thresholds
    return _where(room_on_windows(capture, t), useless_on_windows(capture, t))


def _copied(case: _Case) -> Advice | None:
    """The ranks of a start hold copies: nothing is known of what will be asked."""
    if not case.is_capacity or case.run.checked.decision is None:
        return None
    return _where(one_copy(case.run.capture), _useless(case))


def _where(remedies: tuple[Remedy, ...], useless: tuple[WontHelp, ...]) -> Advice | None:
    return Advice(remedies, useless) if remedies else None


def _of_class(case: _Case) -> Advice:
    """What goes with the class and the limit of a queue."""
    run, verdict = case.run, case.verdict
    listed = remedies_for(
        verdict.bottleneck,
        limit=verdict.limit,
        replay=case.replay,
        sampled=case.sampled,
        costs=run.costs,
        cost=run.cost,
        tokens_per_s=run.throughput.output_tokens_per_s,
        t=run.thresholds,
        kv_dtype=run.capture.subject.kv_dtype,
        found=case.found,
        device=run.capture.subject.device,
    )
    of_room: tuple[Remedy, ...] = ()
    if case.is_capacity:
        of_room = (*fewer_at_once(run.capture, run.span), *one_copy(run.capture))
    is_reserved = any(link.cause == NODES["reserved"] for link in verdict.chain)
    return Advice((*((RESERVE,) if is_reserved else ()), *of_room, *listed), _useless(case))


def _useless(case: _Case) -> tuple[WontHelp, ...]:
    useless = wont_help(case.verdict.bottleneck, case.verdict.limit, case.found)
    return (*(more_ranks(case.run.capture) if case.is_capacity else ()), *useless)
