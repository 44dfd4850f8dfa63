"""The causal chain: the first binding cause, and its effects under it, not beside it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallscope.analyzers.host_idle import evidence_of, host_idle
from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.kernel_mix import KernelMix
from stallscope.analyzers.queue_words import kv_has_room
from stallscope.analyzers.result import Link
from stallscope.analyzers.step.limit import compute_phase
from stallscope.analyzers.whatif.kernel_remedies import kernel_chain
from stallscope.analyzers.whatif.link_remedies import link_chain
from stallscope.profiler.evidence import Measure


def _link(found: Mapping[str, Measure], cause: str, effect: str, *evidence: str) -> Link:
    return Link(cause, effect, tuple(name for name in evidence if name in found))


def _known(found: Mapping[str, Measure], links: Sequence[Link]) -> list[Link]:
    """Keep of each link's evidence what was measured."""
    return [_link(found, link.cause, link.effect, *link.evidence) for link in links]


_AGAIN = "prompt and output prefilled again"


def _capacity(found: Mapping[str, Measure], judgement: Judgement) -> list[Link]:
    full = "KV pool full"
    links = []
    preempted = found.get("preemptions")
    if preempted is not None and preempted.value > 0:
        links.append(_link(found, full, "preemption", "kv_used_peak", "preemptions"))
        evidence = ("recomputed_tokens", "recompute_share")
        links.append(_link(found, "preemption", _AGAIN, *evidence))
    elif "preemptions_inferred" in found:
        links.append(_link(found, full, "preemption", "kv_used_peak", "preemptions_inferred"))
        links.append(_link(found, "preemption", "requests queue for KV room", "waiting_mean"))
    if judgement.preemption is not None:
        links += _thrash(found, queues=judgement.admission is not None)
    elif judgement.admission is not None:
        links.append(
            _link(found, full, "requests queue for KV room", "limit_kv", "queue_wait_share")
        )
        links.append(_link(found, "requests queue for KV room", "TTFT grows", "waiting_mean"))
    return links


def _thrash(found: Mapping[str, Measure], *, queues: bool) -> list[Link]:
    """What prefilling again does to the requests that run, and to those that queue behind it."""
    links = [_link(found, _AGAIN, "fewer new tokens per second", "preempted_share")]
    if queues:
        links.append(_link(found, _AGAIN, "requests queue", "queue_wait_share", "waiting_mean"))
    return links


_WHY_HELD = {
    "stalled": "the engine makes no progress under no cap",
    "deferred": "requests lack something other than room: an adapter, KV from elsewhere, a grammar",
    "imbalance": "one engine gets more requests than one with room",
}


def _held(found: Mapping[str, Measure], limit: str, *, queues: bool) -> list[Link]:
    """A queue that is at no cap, or an engine that stands still without one."""
    if not queues:
        return [_link(found, _WHY_HELD[limit], "requests that run get no tokens", "in_flight")]
    evidence = (f"limit_{limit}", "queue_wait_share", "in_flight_fullest", "in_flight_mean_engine")
    return [
        _link(found, _WHY_HELD[limit], "requests queue", *evidence),
        _link(found, "requests queue", "TTFT grows", "waiting_mean"),
    ]


def _static_batch(found: Mapping[str, Measure]) -> list[Link]:
    cause = "a static batch takes nobody in until its last request ends"
    links = [
        _link(found, cause, "requests queue", "limit_batch", "limit_seqs", "queue_wait_share"),
        _link(found, "requests queue", "TTFT grows", "waiting_mean"),
    ]
    if "padding_share" in found:
        evidence = ("padding_share", "padding_share_decode", "padding_time_share")
        links.append(_link(found, cause, "ended requests are computed on as padding", *evidence))
    return links


def _scheduling(found: Mapping[str, Measure]) -> list[Link]:
    cap = "sequence cap (max_num_seqs) reached"
    cap += " with KV to spare" if kv_has_room(found) else ""
    links = [
        _link(found, cap, "requests queue", "limit_seqs", "kv_used_peak", "queue_wait_share"),
        _link(found, "requests queue", "TTFT grows", "waiting_mean"),
    ]
    if "intensity_decode" in found:
        evidence = ("intensity_decode", "ridge", "mbu_decode")
        links.append(_link(found, cap, "small batch: few FLOPs for each byte read", *evidence))
    return links


def _bandwidth(found: Mapping[str, Measure]) -> list[Link]:
    return [
        _link(
            found,
            "every step reads all weights and the whole KV cache",
            "few FLOPs for each byte: below the ridge",
            "weight_bytes_per_step",
            "intensity_decode",
            "ridge",
        ),
        _link(
            found,
            "few FLOPs for each byte: below the ridge",
            "memory bandwidth sets the step time",
            "mbu_decode",
            "mfu_decode",
        ),
    ]


_HELD_BY_PROMPTS = {
    "tokens": "token budget used up; requests queue",
    "prefill": "prompts queue behind prompts",
}


def _compute(found: Mapping[str, Measure], phase: str, limit: str | None) -> list[Link]:
    work = "prompts bring many tokens per step"
    if phase == "decode":
        work = "a large batch brings many tokens per step"
    evidence = (f"intensity_{phase}", "ridge", f"mfu_{phase}")
    links = [_link(found, work, "arithmetic sets the step time", *evidence)]
    if limit is not None:
        links.append(_link(found, work, _HELD_BY_PROMPTS[limit], f"limit_{limit}"))
    return links


_HOST_DOES = {
    "launch": "the host launches kernels one by one, operator by operator",
    "first": "the host launches kernels for the first time",
    "operators": "the host computes inside operators",
    "copy": "the host hands data over between kernels",
    "alloc": "the host allocates and frees memory of the device",
    "capture": "the host captures CUDA graphs",
    "sync": "the host waits for results before it launches on",
    "wait": "the host waits for a lock, a file or another process",
    "unseen": "the host does something that was not traced",
}


def _host(found: Mapping[str, Measure], *, is_front: bool) -> list[Link]:
    if is_front:
        cause = "requests are prepared more slowly than the scheduler could take them"
        effect = "they queue in front of the scheduler"
        return [_link(found, cause, effect, "limit_front", "queue_wait_share")]
    effect = "the device waits for the host"
    idle = host_idle(found)
    if idle is not None:
        return [_link(found, _HOST_DOES[c], effect, *evidence_of(c)) for c in idle.causes]
    if "host_per_step" in found:
        cause = "work on the host between forward calls"
        return [_link(found, cause, effect, "host_per_step", "gpu_busy")]
    return [_link(found, "kernels are over before the host launches the next", effect, "gpu_busy")]


def _client(found: Mapping[str, Measure]) -> list[Link]:
    cause, effect = "the client sends less than it claims", "the server waits for its client"
    return [_link(found, cause, effect, "in_flight", "in_flight_offered", "idle_share")]


def build_chain(
    judgement: Judgement, measures: tuple[Measure, ...], mix: KernelMix | None = None
) -> tuple[Link, ...]:
    """Walk from the binding cause to its observed effects.

    `mix` describes the kernels where nothing else tells what ran: then nothing is said of a model.
    """
    found = {m.name: m for m in measures}
    limit = judgement.decision.limit
    links: list[Link] = []
    if mix is not None and judgement.bottleneck in ("bandwidth", "compute"):
        links = _known(found, kernel_chain(judgement.bottleneck, mix))
    elif judgement.bottleneck == "capacity":
        links = _capacity(found, judgement)
    elif judgement.bottleneck == "scheduling":
        if limit in _WHY_HELD:
            links = _held(found, limit, queues=judgement.admission is not None)
        else:
            links = _static_batch(found) if limit == "batch" else _scheduling(found)
    elif judgement.bottleneck == "bandwidth":
        links = _bandwidth(found)
    elif judgement.bottleneck == "compute":
        # What queues behind prompts are prompts, whatever the steps did.
        phase = "prefill" if limit is not None else compute_phase(judgement.budgets)
        links = _compute(found, phase, limit)
    elif judgement.bottleneck == "host":
        links = _host(found, is_front=limit == "front")
    elif judgement.bottleneck == "interconnect":
        links = _known(found, link_chain(found))
    elif judgement.bottleneck == "client":
        links = _client(found)
    return tuple(links)
