"""Popular situations: a plan's decode beside what others measured and published.

Nothing here was used to fit the cost model. Run it with no argument; it prints the table of
docs/benchmarks.md. Sources are named in each row; shapes are those of the published config.json.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.plan.memory import memory_map
from stallscope.analyzers.plan.options import PlanOptions, subject_of
from stallscope.analyzers.plan.predictions import predictions
from stallscope.profiler.capture import Capture
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.devices import load_device
from stallscope.profiler.hf_config import model_from_config
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec

_SIZES = (
    *("hidden_size", "intermediate_size", "num_hidden_layers"),
    *("num_attention_heads", "num_key_value_heads", "vocab_size"),
)
_DEEPSEEK = {
    **dict(zip(_SIZES, (7168, 18432, 61, 128, 128, 129_280), strict=True)),
    "model_type": "deepseek_v3",
    "max_position_embeddings": 163_840,
}
_CONFIGS: Mapping[str, Mapping[str, object]] = {
    "mixtral-8x7b": {
        **dict(zip(_SIZES, (4096, 14336, 32, 32, 8, 32_000), strict=True)),
        "model_type": "mixtral",
        "max_position_embeddings": 32_768,
    },
    "qwen3-30b-a3b": {
        **dict(zip(_SIZES, (2048, 6144, 48, 32, 4, 151_936), strict=True)),
        "model_type": "qwen3_moe",
        "head_dim": 128,
        "max_position_embeddings": 40_960,
    },
    "qwen3-4b": {
        **dict(zip(_SIZES, (2560, 9728, 36, 32, 8, 151_936), strict=True)),
        "model_type": "qwen3",
        "head_dim": 128,
        "tie_word_embeddings": True,
        "max_position_embeddings": 40_960,
    },
    "deepseek-r1": {
        **_DEEPSEEK,
        "quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]},
    },
    "deepseek-r1-awq": {
        **_DEEPSEEK,
        "quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 64},
    },
    "gpt-oss-120b": {
        **dict(zip(_SIZES, (2880, 2880, 36, 64, 8, 201_088), strict=True)),
        "model_type": "gpt_oss",
        "max_position_embeddings": 131_072,
        "quantization_config": {"quant_method": "mxfp4"},
    },
    "nemotron-3-nano-30b-a3b": {
        **dict(zip(_SIZES, (2688, 1856, 52, 32, 2, 131_072), strict=True)),
        "model_type": "nemotron_h",
        "head_dim": 128,
        "hybrid_override_pattern": "MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
        "mamba_num_heads": 64,
        "mamba_head_dim": 64,
        "n_routed_experts": 128,
        "num_experts_per_tok": 6,
        "moe_intermediate_size": 1856,
        "moe_shared_expert_intermediate_size": 3712,
        "max_position_embeddings": 262_144,
    },
}
# NVIDIA names no dense peak of GB10 in these; what a product reached there in fp8, and half of it
# (forums.developer.nvidia.com/t/359960). Decode of one request hardly depends on it.
_PEAKS = {"gb10": {"fp8": 188e12, "bf16": 94e12}}


@dataclass(frozen=True, slots=True)
class Run:
    """A published run; `tpot_ms` as stated, or 1000 ÷ tokens per second of one request."""

    model: str
    device: str
    devices: int
    dtype: str
    tokens: tuple[int, int]
    at_once: int
    tpot_ms: float
    engine: str
    source: str


_VLLM_CI = "buildkite.com/vllm/performance-benchmark/builds/9515"  # 128 steps of 8 requests
# Of NVIDIA's and LMSYS's own pages.
_SPARK = "site-one-liart-13.vercel.app/en/benchmarks/2026-05-24-dgx-spark-model-throughput"
_TT = "github.com/tenstorrent/tt-inference-server/issues"
RUNS = (
    Run("llama-3-8b", "a100-sxm4-40gb", 1, "bf16", (1024, 128), 1, 1000 / 75, "vLLM 0.23",
        "johnmusgrave.com/p/vllm-throughput-latency-sweep-on"),
    Run("llama-3-8b", "h200-sxm", 1, "bf16", (32, 128), 8, 833.42 / 128, "vLLM", _VLLM_CI),
    Run("llama-3-70b", "h200-sxm", 4, "bf16", (32, 128), 8, 2077.5 / 128, "vLLM", _VLLM_CI),
    Run("mixtral-8x7b", "h200-sxm", 2, "bf16", (32, 128), 8, 1917.5 / 128, "vLLM", _VLLM_CI),
    Run("llama-3-70b", "h100-sxm", 2, "fp8", (500, 2000), 1, 18.91, "NIM 1.8 (TensorRT-LLM)",
        "docs.nvidia.com/nim/benchmarking/llm/1.0.0/performance"),
    Run("qwen3-30b-a3b", "a100-sxm4-80gb", 1, "bf16", (128, 128), 1, 9.6, "vLLM", f"{_TT}/340"),
    Run("qwen3-4b", "rtx-4090", 1, "bf16", (128, 128), 1, 10.5, "vLLM", f"{_TT}/394"),
    Run("qwen3-8b", "rtx-4090", 1, "bf16", (128, 300), 1, 1000 / 58.7, "vLLM",
        "github.com/AlexsJones/llmfit/pull/1046"),
    Run("deepseek-r1-awq", "h100-sxm", 8, "int4", (128, 128), 1, 16.1, "vLLM", f"{_TT}/356"),
    Run("deepseek-r1", "h200-sxm", 8, "fp8", (1024, 1024), 8, 12.8, "SGLang 0.5.7",
        "github.com/SemiAnalysisAI/InferenceX/issues/870"),
    Run("deepseek-r1", "h200-sxm", 8, "fp8", (1024, 1024), 64, 34.6, "SGLang 0.5.7",
        "github.com/SemiAnalysisAI/InferenceX/issues/870"),
    Run("gpt-oss-120b", "a100-sxm4-80gb", 1, "mxfp4", (512, 256), 1, 1000 / 89, "vLLM 0.10",
        "github.com/vllm-project/vllm/issues/22331"),
    Run("gpt-oss-120b", "mi300x", 1, "mxfp4", (1024, 1024), 64, 31.4, "vLLM 0.17",
        "github.com/SemiAnalysisAI/InferenceX/pull/1061"),
    Run("gpt-oss-120b", "gb10", 1, "mxfp4", (1024, 128), 1, 1000 / 59, "vLLM, rest mxfp4 too",
        "conselara.dev/notes/dgx-spark-benchmarks"),
    Run("llama-3-8b", "gb10", 1, "nvfp4", (2048, 128), 1, 1000 / 38.65, "TRT-LLM", _SPARK),
    Run("llama-3-8b", "gb10", 1, "fp8", (2048, 128), 1, 1000 / 20.5, "SGLang", _SPARK),
    Run("nemotron-3-nano-30b-a3b", "gb10", 1, "nvfp4", (512, 256), 1, 1000 / 74.75, "vLLM",
        "ai-muninn.com/en/blog/dgx-spark-nemotron-3-nano-w4a16-74-toks"),
)  # fmt: skip


def model_of(run: Run) -> ModelSpec:
    """Return a run's model."""
    if run.model not in _CONFIGS:
        return load_model(run.model)
    return model_from_config(Fields(run.model, _CONFIGS[run.model]), run.model)


@dataclass(frozen=True, slots=True)
class Expected:
    """Milliseconds of TPOT: at best, expected, and the least and most that the error allows."""

    best: float
    expected: float
    least: float
    most: float


def expected_ms(run: Run) -> Expected:
    """Return what a plan of the run's load expects; its error is relative to the true value."""
    device = load_device(run.device)
    peaks = {**_PEAKS.get(run.device, {}), **device.peak_flops}
    options = PlanOptions(
        model_of(run),
        replace(device, peak_flops=peaks),
        run.devices,
        dtype=run.dtype,
        input_tokens=run.tokens[0],
        output_tokens=run.tokens[1],
        concurrency=run.at_once,
    )
    cost = build_cost_model(Capture(subject=subject_of(options)))
    if not isinstance(cost, CostModel):
        raise ValueError(f"{run.model} on {run.device}: {cost.reason}")
    memory = memory_map(options, subject_of(options))
    found = predictions(options, memory, cost)["tpot_s"]
    if found is None or found.expected is None or found.expected_error is None:
        raise ValueError(f"{run.model} on {run.device}: nothing is predicted")
    expected, error = found.expected * 1e3, found.expected_error
    return Expected(found.value * 1e3, expected, expected / (1 + error), expected / (1 - error))


def main() -> None:
    """Print the table."""
    print("| situation | by | TPOT, ms | best | expected | within | off |")
    print("|---|---|---|---|---|---|---|")
    inside, misses = 0, []
    for run in RUNS:
        found = expected_ms(run)
        inside += found.least <= run.tpot_ms <= found.most
        misses.append(found.expected / run.tpot_ms - 1)
        devices = run.device if run.devices == 1 else f"{run.devices} × {run.device}"
        print(
            f"| {run.model} {run.dtype}, {devices}, {run.tokens[0]}/{run.tokens[1]}, "
            f"{run.at_once} at once | {run.engine} ({run.source}) | {run.tpot_ms:.1f} | "
            f"{found.best:.1f} | {found.expected:.1f} | {found.least:.1f} to {found.most:.1f} | "
            f"{misses[-1]:+.0%} |"
        )
    mean = sum(abs(miss) for miss in misses) / len(misses)
    print(f"\n{inside} of {len(RUNS)} lie within the interval; off by {mean:.0%} on average.")


if __name__ == "__main__":
    main()
