"""What to do about each class, with the gain where the model gives one, and what won't help."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.result import Remedy, WontHelp
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.engine_flags import HALF_KV, POOL, SEQUENCES, at
from stallscope.analyzers.whatif.host_remedies import host_remedies, wont_help_the_host
from stallscope.analyzers.whatif.link_remedies import link_remedies, links_wont_help
from stallscope.analyzers.whatif.queue_remedies import (
    WONT_HELP_A_BUDGET,
    WONT_HELP_A_QUEUE,
    queue_remedies,
)
from stallscope.analyzers.whatif.replay import Replay, WhatIf, lift, try_config
from stallscope.analyzers.whatif.step_remedies import (
    bandwidth_remedies,
    compute_remedies,
)
from stallscope.profiler.evidence import Measure
from stallscope.profiler.spec import DeviceSpec


def _capacity(replay: Replay | None, kv_dtype: str | None, t: Thresholds) -> list[Remedy]:
    """List what a full pool calls for; one of 8 bits and less an element cannot be halved."""
    lifted = try_config(replay, lift(replay, "kv"), t) if replay else None
    return [
        Remedy(
            "give the KV cache more room, enough for all running requests at full length",
            POOL,
            lifted.gain if lifted else None,
            "run again: preemptions and the share of waiting held back by KV room fall to 0",
            ("kv_used_peak", "limit_kv", "preemptions"),
            cost="memory: less is left for activations, or another GPU",
        ),
        *([] if kv_dtype in _SMALLEST else [_half_bytes(replay, t)]),
        Remedy(
            "admit fewer requests at once, so that those admitted are never preempted",
            SEQUENCES,
            None,
            "preemptions fall to 0; compare tokens/s, not TTFT",
            ("preemptions", "recomputed_tokens"),
            cost="more wait in the queue, so TTFT grows",
        ),
    ]


_SMALLEST = ("fp8", "int8", "int4")  # of the dtypes that engines keep a cache in


def _half_bytes(replay: Replay | None, t: Thresholds) -> Remedy:
    halved = _half_kv(replay, t)
    return Remedy(
        "store the KV cache in half the bytes",
        HALF_KV,
        halved.gain if halved else None,
        "KV bytes per token halve; check the answers' quality on your own prompts",
        ("kv_used_peak", "kv_bytes_per_token"),
        cost="a quality to be checked",
    )


def _half_kv(replay: Replay | None, t: Thresholds) -> WhatIf | None:
    """Twice the blocks in the same bytes; faster KV reads are not counted."""
    if replay is None:
        return None
    blocks = 2 * replay.config.num_blocks
    return try_config(replay, dataclasses.replace(replay.config, num_blocks=blocks), t)


def _scheduling(
    replay: Replay | None, t: Thresholds, sampled: WhatIf | None = None
) -> list[Remedy]:
    lifted = try_config(replay, lift(replay, "seqs"), t) if replay else sampled
    value = lift(replay, "seqs").max_num_seqs if replay else None
    if replay is not None and value == replay.config.max_num_seqs:
        value = None  # it holds already
    return [
        Remedy(
            f"raise the sequence cap to {value}" if value else "raise the sequence cap",
            at(SEQUENCES, value),
            lifted.gain if lifted else None,
            "run again: queue wait share falls below its threshold and tokens/s rises"
            + (" as predicted" if lifted else ""),
            ("limit_seqs", "queue_wait_share", "kv_used_peak"),
            cost="a larger batch: TPOT of each request grows, and KV fills sooner",
        )
    ]


NOTHING: Mapping[str, Measure] = MappingProxyType({})
_WONT_HELP: Mapping[str, tuple[WontHelp, ...]] = {
    "capacity": (
        WontHelp("raising the sequence cap", "requests wait for KV room, not for a slot"),
        WontHelp("a faster GPU with the same memory", "the pool holds the same number of tokens"),
    ),
    "scheduling": (
        WontHelp("more GPU memory or a smaller KV dtype", "requests wait for a slot first"),
        WontHelp("a longer client timeout", "it hides the queue and does not shorten it"),
    ),
    "bandwidth": (
        WontHelp("a GPU with more FLOP/s at the same bandwidth", "arithmetic waits for memory"),
        WontHelp("raising the power limit", "the memory clock does not depend on it"),
    ),
    "compute": (
        WontHelp("weight-only quantisation", "weights widen before they are multiplied"),
        WontHelp("raising the sequence cap", "arithmetic already fills the steps"),
    ),
    "client": (
        WontHelp("tuning the engine", "it waits for its client"),
        WontHelp("more or faster GPUs", "they would wait for the client too"),
    ),
    "device": (
        WontHelp("tuning the engine", "at nominal clocks its steps are explained"),
        WontHelp("quantisation", "it hides slow clocks and leaves the device as slow"),
    ),
    "none": (
        WontHelp("tuning the engine", "it idles for want of requests"),
        WontHelp("a bigger GPU", "the one there is idles"),
    ),
}


def wont_help(
    bottleneck: str, limit: str | None = None, found: Mapping[str, Measure] = NOTHING
) -> tuple[WontHelp, ...]:
    """Name the two most popular fixes that do nothing for a class, or for a queue at a limit.

    `found` holds the run's measures, from which some reasons take their numbers.
    """
    if bottleneck == "host" and limit not in WONT_HELP_A_QUEUE:
        return wont_help_the_host(found)
    if bottleneck == "interconnect":
        return links_wont_help(found)
    if limit == "tokens":
        return WONT_HELP_A_BUDGET
    return WONT_HELP_A_QUEUE.get(limit or "", _WONT_HELP.get(bottleneck, ()))


def remedies_for(
    bottleneck: str,
    *,
    limit: str | None = None,
    replay: Replay | None,
    sampled: WhatIf | None = None,
    costs: Sequence[StepCost],
    cost: CostModel | None,
    tokens_per_s: float | None,
    t: Thresholds,
    kv_dtype: str | None = None,
    found: Mapping[str, Measure] = NOTHING,
    device: DeviceSpec | None = None,
) -> tuple[Remedy, ...]:
    """List what helps against a class, the surest first; a gain only where a model gave it.

    `limit` is what held a queue: some limits of one class call for other things. `sampled` is what
    raising the sequence cap would buy where no replay tells. `found` holds the
    run's measures: what a trace saw of the host decides what helps against it.
    """
    queue = queue_remedies(limit or "", replay, t)
    if limit in WONT_HELP_A_QUEUE:
        return queue
    listed: Sequence[Remedy] = ()
    if bottleneck == "capacity":
        listed = _capacity(replay, kv_dtype, t)
    elif bottleneck == "scheduling":
        listed = _scheduling(replay, t, sampled)
    elif bottleneck == "bandwidth":
        listed = bandwidth_remedies(costs, cost, tokens_per_s, t.small_gain)
    elif bottleneck == "compute":
        listed = compute_remedies(costs, cost, device)
    elif bottleneck == "host":
        listed = host_remedies(found)
    elif bottleneck == "interconnect":
        listed = link_remedies(found)
    return (*queue, *listed)
