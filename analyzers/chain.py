"""The causal chain: the first binding cause, and its effects under it, not beside it."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.result import Link
from stallscope.profiler.evidence import Measure


def _link(found: Mapping[str, Measure], cause: str, effect: str, *evidence: str) -> Link:
    return Link(cause, effect, tuple(name for name in evidence if name in found))


def _capacity(found: Mapping[str, Measure], queues: bool) -> list[Link]:
    full = "KV pool full"
    links = []
    preempted = found.get("preemptions")
    if preempted is not None and preempted.value > 0:
        links.append(_link(found, full, "preemption", "kv_used_peak", "preemptions"))
        links.append(
            _link(found, "preemption", "prompt and output prefilled again", "recomputed_tokens")
        )
    if queues:
        links.append(
            _link(found, full, "requests queue for KV room", "limit_kv", "queue_wait_share")
        )
        links.append(_link(found, "requests queue for KV room", "TTFT grows", "waiting_mean"))
    return links


def _stalled(found: Mapping[str, Measure]) -> list[Link]:
    cause = "the engine makes no progress under no cap"
    return [
        _link(found, cause, "requests queue", "limit_stalled", "queue_wait_share"),
        _link(found, "requests queue", "TTFT grows", "waiting_mean"),
    ]


def _scheduling(found: Mapping[str, Measure]) -> list[Link]:
    cap = "sequence cap (max_num_seqs) reached with KV to spare"
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


def _compute(found: Mapping[str, Measure], queues: bool) -> list[Link]:
    work = "prompts bring many tokens per step"
    links = [
        _link(found, work, "arithmetic sets the step time", "intensity_prefill", "mfu_prefill")
    ]
    if queues:
        links.append(_link(found, work, "token budget used up; requests queue", "limit_tokens"))
    return links


def _host(found: Mapping[str, Measure], queues: bool) -> list[Link]:
    if queues:
        cause = "requests are prepared more slowly than the scheduler could take them"
        effect = "they queue in front of the scheduler"
        return [_link(found, cause, effect, "limit_front", "queue_wait_share")]
    cause = "work on the host between forward calls"
    return [_link(found, cause, "the device waits for the host", "host_per_step", "gpu_busy")]


def build_chain(judgement: Judgement, measures: tuple[Measure, ...]) -> tuple[Link, ...]:
    """Walk from the binding cause to its observed effects."""
    found = {m.name: m for m in measures}
    queues = judgement.admission is not None
    links: list[Link] = []
    if judgement.bottleneck == "capacity":
        links = _capacity(found, queues)
    elif judgement.bottleneck == "scheduling":
        is_stalled = judgement.decision.limit == "stalled"
        links = _stalled(found) if is_stalled else _scheduling(found)
    elif judgement.bottleneck == "bandwidth":
        links = _bandwidth(found)
    elif judgement.bottleneck == "compute":
        links = _compute(found, queues)
    elif judgement.bottleneck == "host":
        links = _host(found, queues)
    return tuple(links)
