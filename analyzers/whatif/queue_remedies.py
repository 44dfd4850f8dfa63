"""What to do about a queue, by the limit that holds it."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.result import Remedy, WontHelp
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.engine_flags import (
    CONTINUOUS,
    FRONTENDS,
    RESERVE_LESS,
    TOKEN_BUDGET,
    at,
)
from stallscope.analyzers.whatif.replay import Replay, lift, try_config

_STALLED = Remedy(
    "find out where the engine stands still: its log, and the stacks of its processes",
    {"any": "py-spy dump --pid PID (of each engine process)", "vllm": "VLLM_LOGGING_LEVEL=DEBUG"},
    None,
    "generated tokens count up again while requests wait",
    ("limit_stalled", "waiting_mean"),
    cost="a look while it stands still",
)
_IMBALANCE = Remedy(
    "send each request to the engine with the fewest in flight",
    {
        "vllm": "--data-parallel-external-lb behind a balancer that counts requests in flight",
        "sglang": "--load-balance-method with a choice other than round_robin",
    },
    None,
    "requests in flight at the fullest engine come down to the engines' mean",
    ("limit_imbalance", "queue_wait_share"),
    cost="a balancer of your own, and prefixes that another engine has cached",
)
_DEFERRED = Remedy(
    "find what the requests lack: a slot for their adapter, KV from another server, or a grammar",
    {"vllm": "--max-loras (adapters); the KV connector's and the grammar backend's own settings"},
    None,
    "the engine's count of deferred requests falls to 0",
    ("limit_deferred", "waiting_mean"),
    cost="memory for more adapters, or a grammar compiled beforehand",
)
_FRONT = Remedy(
    "prepare requests (HTTP, templates, tokenising) in more processes",
    FRONTENDS,
    None,
    "the queue in front of the scheduler empties; if not, the clients' own pool is the limit",
    ("limit_front", "waiting_mean"),
    cost="CPU cores and host memory",
)


RESERVE = Remedy(
    "reserve less for output that never comes: a max_tokens near what is needed, or an admission "
    "that counts on less",
    RESERVE_LESS,
    None,
    "kv_used_peak comes nearer to 1 while requests wait; compare tokens/s, and look at preemptions",
    ("kv_used_peak", "limit_kv"),
    cost="preemption where outputs do run to their limit, which may cost more than the queue",
)


def _larger_budget(replay: Replay | None, t: Thresholds) -> Remedy:
    lifted = try_config(replay, lift(replay, "tokens"), t) if replay else None
    value = lift(replay, "tokens").max_num_batched_tokens if replay else None
    return Remedy(
        "give a step a larger token budget"
        + (f": {value}" if value else ", worth a try where steps do not fill the device yet"),
        at(TOKEN_BUDGET, value),
        lifted.gain if lifted else None,
        "the share of waiting under the token budget falls; compare TPOT too: steps get longer",
        ("limit_tokens", "queue_wait_share"),
        cost="longer steps: TPOT grows while prompts are in them, and activations take more memory",
    )


def _continuous(replay: Replay | None, t: Thresholds) -> Remedy:
    lifted = try_config(replay, lift(replay, "batch"), t) if replay else None
    return Remedy(
        "batch continuously: let requests join and leave the batch at every step",
        CONTINUOUS,
        lifted.gain if lifted else None,
        "run again: no time is spent waiting behind a batch, and padding falls to 0",
        ("limit_batch", "padding_share"),
        cost="another engine, or another way to call it",
    )


_LIKE_LENGTHS = Remedy(
    "batch requests of like lengths together",
    {},
    None,
    "padding_share falls; a batch ends soon after its first request does",
    ("padding_share",),
    cost="requests wait for others of their length",
)


def queue_remedies(limit: str, replay: Replay | None, t: Thresholds) -> tuple[Remedy, ...]:
    """List what lets this queue in; nothing for limits whose class has remedies of its own."""
    if limit == "tokens":
        return (_larger_budget(replay, t),)
    if limit == "batch":
        return (_continuous(replay, t), _LIKE_LENGTHS)
    alone = {"stalled": _STALLED, "imbalance": _IMBALANCE, "front": _FRONT, "deferred": _DEFERRED}
    return (alone[limit],) if limit in alone else ()


WONT_HELP_A_BUDGET = (  # beside it, what helps steps bound by arithmetic may help too
    WontHelp("raising the sequence cap", "prompts wait for room in a step, not for a slot"),
    WontHelp("more GPU memory or a smaller KV dtype", "prompts wait for room in a step first"),
)
WONT_HELP_A_QUEUE: Mapping[str, tuple[WontHelp, ...]] = {
    "batch": (
        WontHelp("more GPU memory or a smaller KV dtype", "a batch that runs takes nobody in"),
        WontHelp("a longer client timeout", "it hides the queue and does not shorten it"),
    ),
    "stalled": (
        WontHelp("raising the sequence cap", "nothing comes out of the requests that run already"),
        WontHelp("more GPU memory or a smaller KV dtype", "KV room is free"),
    ),
    "imbalance": (
        WontHelp("raising the sequence cap", "the other engines have slots to spare"),
        WontHelp("adding engines", "the balancer would leave them idle too"),
    ),
    "deferred": (
        WontHelp(
            "raising the sequence cap", "the scheduler passes these requests over, with slots"
        ),
        WontHelp("more GPU memory or a smaller KV dtype", "it does not wait for KV room"),
    ),
    "front": (
        WontHelp("raising the sequence cap", "the requests have not reached the scheduler"),
        WontHelp("a faster GPU or CUDA graphs", "the queue forms before the engine's step"),
    ),
}
