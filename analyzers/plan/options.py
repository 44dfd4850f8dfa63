"""What to plan."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.analyzers.cost.draft import draft_layer
from stallscope.analyzers.kv_life import DEFAULT_LENGTHS
from stallscope.profiler.spec import DeviceSpec, ModelSpec, Subject

DEFAULT_ACCEPTANCE = 0.7  # of a drafted token


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What to plan; `dtype` None takes the checkpoint's own, else fp16.

    `choices` are pairs of weights' and cache's dtypes to set side by side, this plan's own first.
    `drafted` tokens a step are drafted and accepted with probability `acceptance` each: by `draft`,
    else by the model's own draft layers, or for nothing where it has none or `looks_up`.
    """

    model: ModelSpec
    device: DeviceSpec | None = None
    num_devices: int = 1
    dtype: str | None = None
    kv_dtype: str | None = None
    input_tokens: int = 512
    output_tokens: int = 256
    concurrency: int = 1
    kv_lengths: tuple[int, ...] = DEFAULT_LENGTHS
    choices: tuple[tuple[str | None, str | None], ...] = ()
    sweep: bool = False
    cpu_offload_bytes: int = 0  # of weights, on each device
    drafted: int | None = None
    acceptance: float = DEFAULT_ACCEPTANCE
    draft: ModelSpec | None = None
    links: tuple[DeviceSpec, ...] = ()  # the device by each link to set side by side, own first
    looks_up: bool = False  # drafts are looked up in the prompt, whatever layers the model has


def drafting(options: PlanOptions) -> tuple[ModelSpec | None, int]:
    """Return what drafts, one layer of several alike, and how many of it lie in memory."""
    if options.drafted is None or options.looks_up:
        return None, 0
    if options.draft is not None:
        return options.draft, 1
    return draft_layer(options.model), options.model.draft_layers


def subject_of(options: PlanOptions) -> Subject:
    """Return the subject that a plan stands for, its dtypes chosen."""
    dtype = options.dtype or options.model.dtype or "fp16"
    kv_dtype = options.kv_dtype or (dtype if dtype in ("fp32", "bf16", "fp16") else "fp16")
    lengths = f"{options.input_tokens:,} in, {options.output_tokens:,} out"
    return Subject(
        model=options.model,
        device=options.device,
        num_devices=options.num_devices,
        dtype=dtype,
        kv_dtype=kv_dtype,
        engine="plan",
        workload=f"{lengths}, {options.concurrency:,} at once",
        concurrency=options.concurrency,
        cpu_offload_bytes=options.cpu_offload_bytes or None,
    )
