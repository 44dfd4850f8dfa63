"""The causal chain: the first binding cause, and its effects under it, not beside it."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.coupling.facts import facts_of
from stallscope.analyzers.coupling.nodes import NODES
from stallscope.analyzers.coupling.walk import effects, first_causes
from stallscope.analyzers.host_idle import host_idle
from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.kernel_mix import KernelMix
from stallscope.analyzers.queue_words import kv_has_room
from stallscope.analyzers.result import Link
from stallscope.analyzers.step.core_wait import FINDING as CORES_TAKEN
from stallscope.analyzers.step.limit import compute_phase
from stallscope.analyzers.trace_copies import prevailing_way
from stallscope.analyzers.whatif.kernel_remedies import kernel_chain
from stallscope.profiler.evidence import Measure

_SCHEDULED = {"stalled": "stalled", "deferred": "deferred", "imbalance": "imbalance"}
_SCHEDULED |= {"batch": "static"}


def build_chain(
    judgement: Judgement,
    measures: tuple[Measure, ...],
    mix: KernelMix | None = None,
    engine: str | None = None,
) -> tuple[Link, ...]:
    """Walk from the verdict back to its first causes, and from those to their observed effects.

    `mix` describes the kernels where nothing else tells what ran: then nothing is said of a model.
    """
    found = {m.name: m for m in measures}
    if mix is not None and judgement.bottleneck in ("bandwidth", "compute"):
        links = kernel_chain(judgement.bottleneck, mix)
        return tuple(_link(found, link.cause, link.effect, link.evidence) for link in links)
    facts = facts_of(judgement, found, engine)
    starts = [c for node in binding(judgement, found) for c in first_causes(node, facts)]
    return tuple(
        _link(found, NODES[e.cause], NODES[e.effect], e.evidence) for e in effects(starts, facts)
    )


def binding(judgement: Judgement, found: Mapping[str, Measure]) -> tuple[str, ...]:
    """Name the nodes that the verdict found to bind; none where nothing does."""
    limit = judgement.decision.limit
    match judgement.bottleneck:
        case "capacity":
            return ("kv-full",)
        case "scheduling":
            if judgement.decision.finding == "starved":
                return ("prompts-first",)
            at_cap = "cap-roomy" if kv_has_room(found) else "cap"
            return (_SCHEDULED.get(limit or "", at_cap),)
        case "bandwidth":
            return ("reads-all",)
        case "compute":
            # What queues behind prompts are prompts, whatever the steps did.
            phase = "prefill" if limit is not None else compute_phase(judgement.budgets)
            return ("large-batch" if phase == "decode" else "prompts",)
        case "host":
            return _of_host(found, is_front=limit == "front")
        case "interconnect":
            way = prevailing_way(found)
            marked = ("copies_marked",) if "copies_marked" in found else ()
            return marked if way is None else (way,)
        case "client":
            return ("client",)
        case "device" if judgement.decision.finding == CORES_TAKEN:
            return ("cores-taken",)
        case _:
            return ()


def _of_host(found: Mapping[str, Measure], *, is_front: bool) -> tuple[str, ...]:
    idle = host_idle(found)
    if is_front:
        return ("front",)
    if idle is not None:
        return tuple(f"host-{cause}" for cause in idle.causes)
    return ("host-between" if "host_per_step" in found else "host-late",)


def _link(found: Mapping[str, Measure], cause: str, effect: str, evidence: tuple[str, ...]) -> Link:
    """Keep of a link's evidence what was measured."""
    return Link(cause, effect, tuple(name for name in evidence if name in found))
