"""What lies in each device's memory, and how many requests fit."""

from __future__ import annotations

from dataclasses import replace

from stallscope.analyzers.cost.arithmetic import weight_bytes
from stallscope.analyzers.cost.kv_bytes import kv_bytes_per_token, layer_bytes, state_bytes
from stallscope.analyzers.cost.operators import activation_bytes_per_element
from stallscope.analyzers.plan.options import PlanOptions, drafting
from stallscope.analyzers.plan.result import MEMORY_FRACTION, MemoryMap
from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.profiler.spec import ModelSpec, Subject

STEP_TOKENS = 2048  # vLLM's usual max_num_batched_tokens; sizes activations
BLOCK = 16


def _activation_bytes(spec: ModelSpec, dtype: str, rows: int, requests: int) -> int:
    """Estimate the peak of a step: residual, norm, q/k/v or both MLP halves, and fp32 logits."""
    width = 4 * spec.hidden_size + 2 * _mlp_width(spec)
    element = activation_bytes_per_element(dtype)
    return int(rows * width * element + requests * spec.vocab_size * 4)


def _mlp_width(spec: ModelSpec) -> int:
    """Return what a token's MLP is wide, all experts that it passes together."""
    experts = spec.mixture
    if experts is None:
        return spec.intermediate_size
    mixed = experts.per_token * experts.intermediate_size + experts.shared_size
    return max(mixed, spec.intermediate_size if experts.layers < spec.mlp_layers else 0)


def scheduler_config(
    options: PlanOptions, *, num_blocks: int = 1, step_tokens: int = STEP_TOKENS
) -> SchedulerConfig:
    """Return the engine's scheduler at the plan's concurrency."""
    return SchedulerConfig(
        max_num_seqs=options.concurrency,
        max_num_batched_tokens=step_tokens,
        num_blocks=num_blocks,
        block_size=BLOCK,
        sliding_window=options.model.sliding_window,
    )


def request_bytes(options: PlanOptions, subject: Subject, tokens: int, step_tokens: int = 1) -> int:
    """Return what a request of so many cached tokens holds on each device, in whole blocks.

    What drafts keeps its own cache of the same tokens, each draft layer its own.
    """
    held = _cached_bytes(options, subject, tokens, step_tokens)
    drafts, copies = drafting(options)
    if drafts is None:
        return held
    own = _cached_bytes(replace(options, model=drafts), subject, tokens, step_tokens)
    return held + copies * own


def _cached_bytes(options: PlanOptions, subject: Subject, tokens: int, step_tokens: int) -> int:
    spec, kv_dtype, ranks = options.model, subject.kv_dtype or "", options.num_devices
    config = scheduler_config(options, step_tokens=step_tokens)
    near = replace(config, sliding_window=spec.local_window)
    full = (spec.attention_layers - spec.local_layers) * config.most_blocks(tokens)
    local = spec.local_layers * near.most_blocks(tokens)
    cached = (full + local) * BLOCK * layer_bytes(spec, kv_dtype, ranks)
    return int(cached) + state_bytes(spec, kv_dtype, tensor_parallel=ranks)


def _draft_bytes(options: PlanOptions, dtype: str) -> int:
    """Return the weights of what drafts on each device, split and stored as the model's own."""
    drafts, copies = drafting(options)
    if drafts is None:
        return 0
    return copies * int(weight_bytes(drafts, dtype, tensor_parallel=options.num_devices))


def memory_map(options: PlanOptions, subject: Subject) -> MemoryMap:
    """Lay out each device's memory at the plan's concurrency."""
    spec, dtype, ranks = options.model, subject.dtype or "", options.num_devices
    tokens = options.input_tokens + options.output_tokens - 1
    per_request = request_bytes(options, subject, tokens)
    # A step's new tokens lie in the cache before what they push out of a sliding window is free.
    pushing = request_bytes(options, subject, tokens, STEP_TOKENS) - per_request
    weights = int(weight_bytes(spec, dtype, tensor_parallel=ranks))
    weights -= min(weights, options.cpu_offload_bytes)
    draft = _draft_bytes(options, dtype)
    running = options.concurrency
    usable = free = most = None
    if options.device is not None and options.device.memory_bytes is not None:
        usable = int(MEMORY_FRACTION * options.device.memory_bytes)
        rows = _activation_bytes(spec, dtype, STEP_TOKENS, 0)
        # A request that runs takes its KV cache and its row of logits.
        each = per_request + _activation_bytes(spec, dtype, 0, 1)
        most = max(0, (usable - weights - draft - rows - pushing) // each)
        running = min(running, max(1, most))
    activations = _activation_bytes(spec, dtype, STEP_TOKENS, running)
    if usable is not None:
        free = usable - weights - draft - activations - pushing - options.concurrency * per_request
    return MemoryMap(
        weights_bytes=weights,
        draft_weights_bytes=draft,
        kv_bytes_per_token=kv_bytes_per_token(spec, subject.kv_dtype or "", tensor_parallel=ranks),
        kv_bytes=options.concurrency * per_request + pushing,
        activation_bytes=activations,
        usable_bytes=usable,
        free_bytes=free,
        max_concurrency=most,
    )
