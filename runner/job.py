"""A run's options, checked before anything heavy starts: the model, the load, the limits."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path

from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.errors import InputError, UsageError
from stallscope.profiler.hf_families import RUNNABLE
from stallscope.profiler.models import load_model, preset_names
from stallscope.profiler.spec import DTYPE_BYTES, ModelSpec
from stallscope.profiler.wording import counted
from stallscope.runner.options import RunOptions
from stallscope.runner.trace_file import read_trace
from stallscope.runner.workload import (
    ClosedLoop,
    OpenLoop,
    RequestSize,
    parse_lengths,
    poisson_times_ns,
    random_sizes,
)

DTYPES = ("fp32", "bf16", "fp16")
# Without a KV budget the pool holds as many whole requests as the sequence cap lets run, but no
# fewer than eight (a low cap must not look like a full pool), no more than there are, and no more
# than twice the clients (whose requests would otherwise fill it by definition); all within this
# share of the free memory.
KV_SHARE = 0.25
KV_LEAST_REQUESTS = 8
BLOCK_SIZE = 16


@dataclass(frozen=True, slots=True)
class Job:
    """What is going to run; `weights` is the checkpoint's folder, None for random weights."""

    options: RunOptions
    spec: ModelSpec
    weights: Path | None
    load: ClosedLoop | OpenLoop

    @property
    def kv_dtype(self) -> str:
        """The KV cache's element type."""
        return self.options.kv_dtype or self.options.dtype

    @property
    def block_size(self) -> int:
        """Tokens in a KV block; the tensors of a static batch grow by single tokens."""
        return 1 if self.is_static else self.options.block_size or BLOCK_SIZE

    @property
    def is_static(self) -> bool:
        """Whether a batch takes nobody in until its last request ends."""
        return self.options.engine == "transformers"

    @property
    def chunked_prefill(self) -> bool:
        """Whether a prompt may be split over steps."""
        return not self.is_static and self.options.chunked_prefill is not False

    @property
    def block_bytes(self) -> int:
        """Bytes of one KV block: 2 (K and V) · layers · KV heads · head size · element · tokens."""
        elements = 2 * self.spec.num_layers * self.spec.num_kv_heads * self.spec.head_dim
        return round(elements * DTYPE_BYTES[self.kv_dtype]) * self.block_size

    @property
    def largest(self) -> RequestSize:
        """The request that takes the most KV cache."""
        return max(self.load.sizes, key=lambda size: size.kv_tokens)

    @property
    def _widest(self) -> int:
        """Tokens that a row of a static batch may hold: the longest prompt may pad any output."""
        sizes = self.load.sizes
        longest = max(size.input_tokens for size in sizes), max(s.output_tokens for s in sizes)
        return sum(longest) - 1

    @property
    def concurrency(self) -> int:
        """Most requests that the load and the sequence cap let run at a time."""
        return min(len(self.load.sizes), self._offered, self.options.max_num_seqs)

    @property
    def _offered(self) -> int:
        count = len(self.load.sizes)
        return self.load.concurrency if isinstance(self.load, ClosedLoop) else count

    @property
    def _requests_to_hold(self) -> int:
        wanted = max(self.options.max_num_seqs, KV_LEAST_REQUESTS)
        return min(len(self.load.sizes), 2 * self._offered, wanted)

    def scheduler_config(self, free_bytes: int) -> SchedulerConfig:
        """Return the limits. Raises UsageError if the KV cache cannot hold one whole request."""
        config = SchedulerConfig(
            max_num_seqs=self.options.max_num_seqs,
            max_num_batched_tokens=self.options.max_num_batched_tokens,
            num_blocks=1,
            block_size=self.block_size,
            chunked_prefill=self.chunked_prefill,
            sliding_window=self.spec.sliding_window,
            static=self.is_static,
        )
        if self.is_static:  # no pool: this is what the largest batch could grow to
            return replace(config, num_blocks=self.concurrency * config.most_blocks(self._widest))
        need = config.most_blocks(self.largest.kv_tokens)
        budget = self.options.kv_budget
        if budget is None:
            budget = min(
                need * self._requests_to_hold * self.block_bytes, int(KV_SHARE * free_bytes)
            )
        num_blocks = budget // self.block_bytes
        if num_blocks < need:
            raise UsageError(
                f"a KV budget of {budget:,} bytes is too small for one whole request "
                f"({self.largest.input_tokens} + {self.largest.output_tokens} tokens): "
                f"give --kv-budget {need * self.block_bytes} or more"
            )
        return replace(config, num_blocks=num_blocks)


def prepare(options: RunOptions) -> Job:
    """Check the options and build the load. Raises UsageError or InputError."""
    _check_choices(options)
    _check_numbers(options)
    spec = load_model(options.model)
    if spec.not_runnable is not None:
        raise InputError(
            f"{spec.name}: {spec.not_runnable} is modelled, but not run; "
            f"choose a model of type {', '.join(RUNNABLE)}"
        )
    job = Job(options, spec, _weights_folder(options.model), _load(options))
    _check_fit(job)
    return job


def describe(job: Job) -> str:
    """Return the load in one line for people."""
    return f"{_load_text(job)}{', phases isolated' if job.options.isolate_phases else ''}"


def _load_text(job: Job) -> str:
    options, count = job.options, len(job.load.sizes)
    if options.trace is not None:
        return f"{counted(count, 'request')} of {options.trace.name}"
    lengths = f"{options.input_tokens} in, {options.output_tokens} out"
    if options.rate is not None:
        return f"{counted(count, 'request')} ({lengths}) at {options.rate:g} per second"
    clients = counted(options.concurrency, "client") if options.concurrency else "all at once"
    return f"{counted(count, 'request')} ({lengths}), {clients}"


def _check_choices(options: RunOptions) -> None:
    if options.engine not in ("builtin", "transformers"):
        raise UsageError(f"--engine {options.engine}: choose builtin or transformers")
    if options.device not in ("auto", "cpu", "cuda"):
        raise UsageError(f"--device {options.device}: choose auto, cpu or cuda")
    for option, dtype in (("--dtype", options.dtype), ("--kv-dtype", options.kv_dtype)):
        if dtype in DTYPE_BYTES and dtype not in DTYPES:
            raise UsageError(f"{option} {dtype} is not built yet: choose {', '.join(DTYPES)}")
        if dtype is not None and dtype not in DTYPES:
            raise UsageError(f"{option} {dtype}: choose {', '.join(DTYPES)}")
    given = {
        "--concurrency": options.concurrency,
        "--rate": options.rate,
        "--trace": options.trace,
    }
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise UsageError(f"{' and '.join(names)} exclude each other: choose one")
    if options.isolate_phases and (options.rate is not None or options.trace is not None):
        raise UsageError(f"--isolate-phases follows no arrival times: leave {names[0]} out")
    if options.engine == "transformers":
        _check_static(options)


def _check_static(options: RunOptions) -> None:
    """Refuse what a static batch cannot do; its cache is of the model's dtype, and grows freely."""
    asked = {
        "--chunked-prefill": bool(options.chunked_prefill),
        "--kv-budget": options.kv_budget is not None,
        "--block-size": options.block_size is not None,
        "--kv-dtype": options.kv_dtype not in (None, options.dtype),
        "--isolate-phases": options.isolate_phases,
    }
    refused = [name for name, is_asked in asked.items() if is_asked]
    if refused:
        raise UsageError(
            f"--engine transformers cannot honour {', '.join(refused)}: leave it out, or take "
            "--engine builtin"
        )


def _check_numbers(options: RunOptions) -> None:
    least_one = {
        "--requests": options.requests,
        "--concurrency": options.concurrency,
        "--max-num-seqs": options.max_num_seqs,
        "--max-num-batched-tokens": options.max_num_batched_tokens,
        "--block-size": options.block_size,
        "--kv-budget": options.kv_budget,
        "--top-k": options.top_k,
    }
    for option, value in least_one.items():
        if value is not None and value < 1:
            raise UsageError(f"{option} {value}: give at least 1")
    if options.warmup < 0:
        raise UsageError(f"--warmup {options.warmup}: give 0 or more requests")
    if options.rate is not None and not 0 < options.rate < math.inf:
        raise UsageError(f"--rate {options.rate}: give requests per second, above 0")
    if not 0 <= options.temperature < math.inf:
        raise UsageError(f"--temperature {options.temperature}: give 0 (greedy) or more")
    if options.top_p is not None and not 0 < options.top_p <= 1:
        raise UsageError(f"--top-p {options.top_p}: give more than 0 and at most 1")


def _weights_folder(model: str) -> Path | None:
    """Return the model's folder if it holds weights; a preset's name wins over a folder's."""
    folder = Path(model)
    if model.lower() in preset_names() or not folder.is_dir():
        return None
    return folder if any(folder.glob("*.safetensors")) else None


def _load(options: RunOptions) -> ClosedLoop | OpenLoop:
    if options.trace is not None:
        return read_trace(options.trace)
    sizes = random_sizes(
        parse_lengths(options.input_tokens, "--input-tokens"),
        parse_lengths(options.output_tokens, "--output-tokens"),
        count=options.requests,
        seed=options.seed,
    )
    if options.rate is None:
        return ClosedLoop(sizes, options.concurrency or len(sizes))
    times = poisson_times_ns(options.rate, count=len(sizes), seed=options.seed)
    return OpenLoop(sizes, times)


def _check_fit(job: Job) -> None:
    options, spec = job.options, job.spec
    longest = max(size.input_tokens + size.output_tokens for size in job.load.sizes)
    if longest > spec.max_position:
        raise UsageError(
            f"a request of {longest} tokens (prompt + output) is longer than {spec.name} allows "
            f"({spec.max_position}): ask for fewer tokens"
        )
    unknown = [token for token in options.eos if not 0 <= token < spec.vocab_size]
    if unknown:
        raise UsageError(f"--eos {unknown[0]}: {spec.name} has tokens 0 to {spec.vocab_size - 1}")
    if job.is_static:
        _check_prompts(job)
        return
    # After a preemption, everything generated so far is part of the prompt.
    whole = job.largest.kv_tokens
    if options.isolate_phases and spec.sliding_window is not None and whole > spec.sliding_window:
        # A pass is repeated over keys that are still there; past the window they are given back.
        raise UsageError(
            f"--isolate-phases repeats passes over a whole cache, and {spec.name} keeps "
            f"{spec.sliding_window} tokens: ask for fewer tokens"
        )
    if not job.chunked_prefill and whole > options.max_num_batched_tokens:
        raise UsageError(
            f"without chunked prefill a step must hold a whole request of {whole} tokens: "
            f"give --max-num-batched-tokens {whole} or more"
        )
    if options.kv_budget is not None:
        job.scheduler_config(free_bytes=0)


def _check_prompts(job: Job) -> None:
    longest = max(size.input_tokens for size in job.load.sizes)
    if longest > job.options.max_num_batched_tokens:
        raise UsageError(
            f"--engine transformers prefills whole prompts, and the longest has {longest} tokens: "
            f"give --max-num-batched-tokens {longest} or more"
        )
