"""What a run is asked to do: the options of `stallscope run` below the command line."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class RunOptions:
    """One instrumented run. Lengths are "N" or "A:B" (uniform, seeded).

    At most one of `concurrency`, `rate` (requests per second) and `trace` is given; with none, all
    requests are sent at once. `kv_dtype` None follows `dtype`; `kv_budget` None holds the
    workload's own most, up to a quarter of the free memory. `chunked_prefill` and `block_size` None
    leave it to the engine: builtin does, in blocks of 16 tokens; transformers knows neither.
    `warmup` requests run before the measured ones. `isolate_phases` serves no load: prefill and
    decode run in stretches of their own, long enough for slow counters. `eos` tokens end a request
    early; `temperature` 0 is greedy.
    """

    model: str
    capture: Path
    dtype: str = "fp32"
    kv_dtype: str | None = None
    device: str = "auto"
    engine: str = "builtin"
    input_tokens: str = "128"
    output_tokens: str = "64"
    requests: int = 16
    concurrency: int | None = None
    rate: float | None = None
    trace: Path | None = None
    max_num_seqs: int = 64
    max_num_batched_tokens: int = 2048
    chunked_prefill: bool | None = None
    block_size: int | None = None
    isolate_phases: bool = False
    kv_budget: int | None = None  # bytes
    seed: int = 0
    warmup: int = 2
    temperature: float = 0.0
    top_k: int | None = None
    top_p: float | None = None
    eos: tuple[int, ...] = ()
    force: bool = False  # replace an existing capture
