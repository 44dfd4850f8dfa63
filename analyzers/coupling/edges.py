"""The edges from cause to effect: what shows them, what must hold, and where that is written.

An edge is walked where all of `when` holds of the run's facts: its measures by name, and what the
verdict itself found (`held_by_kv`, `thrash`, `queues`, … in facts.py). A fact that is not known
never holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.analyzers.host_idle import GROUPS, evidence_of
from stallscope.analyzers.load.first_token import MOST_BEGUN

_METRICS, _VERDICT = "docs/metrics.md", "docs/verdict.md"
_PAGED = "Kwon et al., PagedAttention, SOSP 2023 (doi:10.1145/3600006.3613165), sections 4.5 and 6"
_SARATHI = "Agrawal et al., Sarathi-Serve, OSDI 2024 (arXiv:2403.02310): generation stalls"
_ORCA = "Yu et al., Orca, OSDI 2022: batching by iteration"
_ROOFLINE = "Williams et al., Roofline, CACM 2009 (doi:10.1145/1498765.1498785)"
_MLA = "vllm-project/recipes PR#115: each rank stores the whole latent"
_RESERVES = "TensorRT-LLM, capacity_scheduler_policy: GUARANTEED_NO_EVICT is the default; "
_RESERVES += "SGLang, tuning: token usage under 0.9 with a queue is too conservative a schedule"


@dataclass(frozen=True, slots=True)
class Condition:
    """A fact compared with a number: above it (">"), at least it ("≥"), or below it ("<")."""

    fact: str
    sign: str
    value: float


@dataclass(frozen=True, slots=True)
class Edge:
    """A cause that brings about an effect; `evidence` names the measures to show, where seen."""

    cause: str
    effect: str
    evidence: tuple[str, ...]
    when: tuple[Condition, ...]
    source: str


def _is(fact: str) -> Condition:
    return Condition(fact, ">", 0.0)


def _host(group: str) -> Edge:
    return Edge(f"host-{group}", "device-waits", evidence_of(group), (), _VERDICT)


_PREEMPTS = ("kv_used_peak", "preemptions")
_FULL_ENGINE = ("in_flight_fullest", "in_flight_mean_engine")
_INTENSITY = ("intensity_decode", "ridge", "mbu_decode")
# Gaps between tokens, their 99th percentile over the median. Nothing was measured for this line:
# it is chosen so that a tail is plain to see.
_LONG_TAIL = 3.0
_BELOW_RIDGE = Condition("intensity_of_ridge", "<", 1.0)

EDGES: tuple[Edge, ...] = (
    # Memory → KV room → preemption → prefilled again → TTFT
    Edge(
        "kv-copied",
        "kv-room",
        ("kv_copies",),
        (_is("by_kv"), Condition("kv_copies", "≥", 1.25)),
        _MLA,
    ),
    Edge(
        "weights-heavy",
        "kv-room",
        ("weights_of_memory",),
        (_is("by_kv"), Condition("weights_of_memory", "≥", 0.5)),
        _METRICS,
    ),
    Edge("reserved", "kv-full", ("kv_used_peak", "limit_kv"), (_is("reserves"),), _RESERVES),
    Edge("kv-room", "kv-full", ("kv_bytes_per_token", "kv_used_peak"), (), _PAGED),
    Edge("kv-full", "preemption", _PREEMPTS, (_is("preemptions"),), _PAGED),
    Edge(
        "kv-full",
        "preemption",
        ("kv_used_peak", "preemptions_inferred"),
        (_is("only_inferred"),),
        _VERDICT,
    ),
    Edge(
        "preemption",
        "again",
        ("recomputed_tokens", "recompute_share"),
        (_is("preemptions"),),
        _PAGED,
    ),
    Edge("preemption", "kv-queue", ("waiting_mean",), (_is("only_inferred"),), _VERDICT),
    Edge("again", "fewer-tokens", ("preempted_share",), (_is("thrash"),), _PAGED),
    Edge(
        "again",
        "queue",
        ("queue_wait_share", "waiting_mean"),
        (_is("thrash"), _is("queues")),
        _VERDICT,
    ),
    Edge("kv-full", "kv-queue", ("limit_kv", "queue_wait_share"), (_is("held_by_kv"),), _PAGED),
    Edge(
        "kv-queue",
        "ttft",
        ("waiting_mean",),
        (_is("held_by_kv"), _is("waits_for_first")),
        _METRICS,
    ),
    Edge(
        "kv-queue",
        "put-back-wait",
        ("waiting_mean", "first_token_wait_share"),
        (_is("held_by_kv"), Condition("first_token_wait_share", "<", MOST_BEGUN)),
        _METRICS,
    ),
    # … and KV room → concurrency → batch → intensity
    Edge("kv-full", "small-batch", _INTENSITY, (_is("held_by_kv"), _BELOW_RIDGE), _ROOFLINE),
    # The scheduler's own limits
    Edge("cap", "queue", ("limit_seqs", "kv_used_peak", "queue_wait_share"), (), _VERDICT),
    Edge("cap", "small-batch", _INTENSITY, (_is("intensity_decode"),), _ROOFLINE),
    Edge("cap-roomy", "queue", ("limit_seqs", "kv_used_peak", "queue_wait_share"), (), _VERDICT),
    Edge("cap-roomy", "small-batch", _INTENSITY, (_is("intensity_decode"),), _ROOFLINE),
    Edge("static", "queue", ("limit_batch", "limit_seqs", "queue_wait_share"), (), _ORCA),
    Edge(
        "static",
        "padding",
        ("padding_share", "padding_share_decode", "padding_time_share"),
        (Condition("padding_share", "≥", 0.0),),
        _ORCA,
    ),
    *(
        Edge(
            held,
            "queue",
            (f"limit_{held}", "queue_wait_share", *_FULL_ENGINE),
            (_is("queues"),),
            _VERDICT,
        )
        for held in ("stalled", "deferred", "imbalance")
    ),
    Edge("stalled", "no-tokens", ("in_flight",), (_is("no_queue"),), _VERDICT),
    Edge("queue", "ttft", ("waiting_mean",), (_is("waits_for_first"),), _METRICS),
    Edge(
        "queue",
        "put-back-wait",
        ("waiting_mean", "first_token_wait_share"),
        (Condition("first_token_wait_share", "<", MOST_BEGUN),),
        _METRICS,
    ),
    # The step
    Edge(
        "reads-all",
        "below-ridge",
        ("weight_bytes_per_step", "intensity_decode", "ridge"),
        (),
        _ROOFLINE,
    ),
    Edge("below-ridge", "memory-sets", ("mbu_decode", "mfu_decode"), (), _ROOFLINE),
    Edge(
        "prompts",
        "arithmetic-sets",
        ("intensity_prefill", "ridge", "mfu_prefill"),
        (),
        _ROOFLINE,
    ),
    Edge(
        "large-batch",
        "arithmetic-sets",
        ("intensity_decode", "ridge", "mfu_decode"),
        (),
        _ROOFLINE,
    ),
    Edge("prompts", "budget-used", ("limit_tokens",), (_is("held_by_tokens"),), _VERDICT),
    Edge("prompts", "prompts-behind", ("limit_prefill",), (_is("held_by_prefill"),), _VERDICT),
    Edge(
        "prompts",
        "decode-waits",
        ("decode_share_engine", "itl_tail"),
        (Condition("itl_tail", "≥", _LONG_TAIL),),
        _SARATHI,
    ),
    Edge("prompts-first", "decode-waits", ("prefills_per_token",), (), _SARATHI),
    Edge("decode-waits", "itl-tail", ("itl_tail",), (), _SARATHI),
    # The host
    Edge("front", "front-queue", ("limit_front", "queue_wait_share"), (), _VERDICT),
    *(_host(group) for group in GROUPS),
    Edge("host-between", "device-waits", ("host_per_step", "gpu_busy"), (), _VERDICT),
    Edge("host-late", "device-waits", ("gpu_busy",), (), _VERDICT),
    Edge(
        "device-waits",
        "both-low",
        ("sm_throughput", "dram_throughput"),
        (Condition("sm_throughput", "<", 0.3), Condition("dram_throughput", "<", 0.3)),
        _ROOFLINE,
    ),
    # Whoever shares the cores
    Edge(
        "cores-taken",
        "threads-wait",
        ("core_wait", "core_wait_longest", "cores_others", "cores_stolen"),
        (),
        _VERDICT,
    ),
    # Links and clients
    Edge(
        "copies_to_device",
        "copies-wait",
        (
            *("copies_to_device", "host_to_device_bytes", "host_to_device_rate"),
            *("copies_exposed", "gpu_busy"),
        ),
        (),
        _METRICS,
    ),
    Edge(
        "copies_marked",
        "copies-wait",
        ("copies_marked", "copy_bytes_per_step", "copy_rate"),
        (),
        _METRICS,
    ),
    *(
        Edge(way, "copies-wait", (way, "copies_exposed", "gpu_busy"), (), _METRICS)
        for way in ("copies_to_host", "copies_between_devices")
    ),
    Edge(
        "communication_exposed",
        "exchange-wait",
        ("communication_exposed", "gpu_busy"),
        (),
        _METRICS,
    ),
    Edge("client", "server-waits", ("in_flight", "in_flight_offered", "idle_share"), (), _VERDICT),
)
