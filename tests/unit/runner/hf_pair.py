"""One small model on both engines, with the same weights, and loads to run on it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.static_schedule import scheduler_for
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.models import load_model
from stallscope.profiler.recorder import Recorder
from stallscope.runner.batch import Chunk, Executor, StepResult
from stallscope.runner.decoder import build_decoder
from stallscope.runner.engine import Engine, Generation
from stallscope.runner.engine_log import EngineLog
from stallscope.runner.executor import TorchExecutor
from stallscope.runner.hf_executor import HfExecutor
from stallscope.runner.hf_model import HfModel, load_hf_model
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.load_log import LoadLog
from stallscope.runner.static_log import StaticLog
from stallscope.runner.workload import ClosedLoop, RequestSize

SEED = 3
VOCAB = 97
# KV of a token: K and V, 2 layers, 2 heads of 16, fp32.
TOKEN = 2 * 2 * 2 * 16 * 4
LLAMA: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": VOCAB,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-6,
}
ROPE3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0}
CONFIGS = {
    "llama": LLAMA,
    "llama3-rope-tied": LLAMA
    | {"rope_scaling": ROPE3 | {"original_max_position_embeddings": 64}}
    | {"tie_word_embeddings": True, "rope_theta": 500.0},
    "qwen2": LLAMA | {"model_type": "qwen2"},
    "qwen2-tied": LLAMA | {"model_type": "qwen2", "tie_word_embeddings": True},
    "qwen3": LLAMA | {"model_type": "qwen3"},
    "mistral": LLAMA | {"model_type": "mistral", "sliding_window": None},
    "mistral-window": LLAMA | {"model_type": "mistral", "sliding_window": 16},
}


@dataclass
class Heard:
    """Passes steps on and keeps what every request sampled."""

    executor: Executor
    tokens: dict[int, list[int]] = field(default_factory=dict)

    @property
    def kv_bytes_per_token(self) -> int:
        return self.executor.kv_bytes_per_token

    def execute(self, chunks: Sequence[Chunk]) -> StepResult:
        result = self.executor.execute(chunks)
        for request, token in result.tokens.items():
            self.tokens.setdefault(request, []).append(token)
        return result

    def free(self, request: int) -> None:
        self.executor.free(request)


@dataclass(frozen=True)
class Served:
    """What a load left: its capture, and the tokens of each request."""

    capture: Capture
    tokens: dict[int, list[int]]

    @property
    def steps(self) -> tuple[Step, ...]:
        return self.capture.steps

    def total(self, kind: str, key: str = "bytes") -> int:
        return sum(e.data[key] for e in self.capture.events if e.kind == kind)


@dataclass(frozen=True)
class EnginePair:
    """A folder with a config.json, run by both engines on weights of the same seed."""

    folder: Path

    def hf_model(self) -> HfModel:
        return load_hf_model(
            str(self.folder),
            load_model(str(self.folder)),
            folder=None,
            dtype="fp32",
            device="cpu",
            seed=SEED,
        )

    def transformers(self, sizes: Sequence[tuple[int, int]], **limits: int) -> Served:
        window = load_model(str(self.folder)).sliding_window
        config = _config(static=True, chunked_prefill=False, sliding_window=window, **limits)
        executor = HfExecutor(self.hf_model())
        return self._serve(sizes, config, executor, lambda to: StaticLog(to, executor))

    def builtin(self, sizes: Sequence[tuple[int, int]], **limits: int) -> Served:
        spec = load_model(str(self.folder))
        config = _config(sliding_window=spec.sliding_window, **limits)
        pool = KvPool(spec, config.num_blocks, config.block_size, "fp32", "cpu")
        executor = TorchExecutor(build_decoder(spec, seed=SEED), pool)
        return self._serve(
            sizes, config, executor, lambda to: EngineLog(to, config, token_bytes=TOKEN)
        )

    def _serve(
        self,
        sizes: Sequence[tuple[int, int]],
        config: SchedulerConfig,
        executor: Executor,
        new_log: Callable[[Recorder], LoadLog],
    ) -> Served:
        """Send all requests at once, and hear what they sample."""
        heard = Heard(executor)
        engine = Engine(scheduler_for(config), heard, generation=Generation(VOCAB, SEED))
        path = self.folder / "run.sqlite"
        with Recorder(path, sample_hz=0, force=True) as recorder:
            load = ClosedLoop([RequestSize(*size) for size in sizes], len(sizes))
            engine.run(load, new_log(recorder))
        return Served(read_capture(path), heard.tokens)


def _config(**limits: Any) -> SchedulerConfig:
    defaults: dict[str, Any] = {"max_num_seqs": 8, "max_num_batched_tokens": 512}
    return SchedulerConfig(**{**defaults, "num_blocks": 256, "block_size": 8, **limits})


def write_config(folder: Path, config: dict[str, Any]) -> Path:
    (folder / "config.json").write_text(json.dumps(config))
    return folder
