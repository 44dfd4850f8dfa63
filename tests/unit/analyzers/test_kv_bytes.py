"""KV bytes of every kind of attention, by hand and against what engines printed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stallscope.analyzers.cost.kv_bytes import kv_bytes, kv_bytes_per_token, state_bytes
from stallscope.profiler.model_parts import Latent, LinearAttention
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec

GIB = 2**30
# DeepSeek-V3's and Kimi-K2's attention: 61 layers, a latent of 512 and 64 that carry positions.
DEEPSEEK = ModelSpec(
    *("deepseek", 7168, 18432, 61, 128, 128, 192, 129_280, 163_840),
    latent=Latent(512, 64, 128, 128, 1536),
)
# gpt-oss-20b: 24 layers, every second with a window of 128; 8 KV heads of 64.
GPT_OSS = ModelSpec(
    *("gpt-oss", 2880, 2880, 24, 64, 8, 64, 201_088, 131_072), local_layers=12, local_window=128
)
# qwen3-next: 36 of 48 layers linear, 2 KV heads of 256 in the others.
QWEN = ModelSpec(
    *("qwen3-next", 2048, 5120, 48, 16, 2, 256, 151_936, 262_144),
    linear_attention=LinearAttention(36, 16, 32, 128, 128, 4),
)


def test_a_latent_is_whole_on_every_rank() -> None:
    # 61 x (512 + 64) x 2 bytes; a rank of eight holds no less.
    assert kv_bytes_per_token(DEEPSEEK, "bf16") == 70_272
    assert kv_bytes_per_token(DEEPSEEK, "bf16", tensor_parallel=8) == 70_272
    assert kv_bytes(DEEPSEEK, 1000, "fp8") == 35_136_000


def test_windowed_layers_stop_growing() -> None:
    layer = 2 * 8 * 64 * 2
    assert kv_bytes_per_token(GPT_OSS, "bf16") == 24 * layer
    assert kv_bytes(GPT_OSS, 128, "bf16") == 128 * 24 * layer
    assert kv_bytes(GPT_OSS, 1000, "bf16") == (12 * 1000 + 12 * 128) * layer
    assert kv_bytes(GPT_OSS, 1000, "bf16", tensor_parallel=8) * 8 == kv_bytes(GPT_OSS, 1000, "bf16")


def test_linear_layers_hold_a_state_and_no_more() -> None:
    # 32 heads of 128 x 128, and 3 earlier inputs of a convolution of 2 x 16 x 128 + 32 x 128.
    state = 36 * (32 * 128 * 128 + 3 * 8192) * 2
    assert state_bytes(QWEN, "bf16") == state_bytes(QWEN, "fp8") == state
    assert state_bytes(QWEN, "fp32") == 2 * state
    assert kv_bytes_per_token(QWEN, "bf16") == 12 * 2 * 2 * 256 * 2
    assert kv_bytes(QWEN, 100, "bf16") == 100 * 24_576 + state
    assert state_bytes(QWEN, "bf16", tensor_parallel=4) == state // 4


@pytest.mark.parametrize(
    ("file", "spec", "kv_dtype", "ranks"),
    [
        ("vllm__h200bench_bench3_v1.log", "llama-3-8b", "bf16", 1),
        ("vllm__infx_llama70bfp4_tp1_bs16_offloadoff.server.log", "llama-3-70b", "fp8", 1),
        ("vllm__infx_dsr1fp4_b200_tp4_bs16_offloadoff.server.log", "deepseek", "fp8", 4),
    ],
)
def test_engines_hold_as_many_tokens(
    file: str, spec: str, kv_dtype: str, ranks: int, corpus: Path
) -> None:
    """vLLM prints the pool's GiB, to two decimals, and the tokens it holds, in whole blocks."""
    text = (corpus / "logs" / file).read_text(errors="replace")
    model = DEEPSEEK if spec == "deepseek" else load_model(spec)
    each = kv_bytes_per_token(model, kv_dtype, tensor_parallel=ranks)
    (pool,) = set(re.findall(r"Available KV cache memory: ([\d.]+) GiB", text))
    (tokens,) = set(re.findall(r"GPU KV cache size: ([\d,]+) tokens", text))
    assert float(pool) * GIB / each == pytest.approx(int(tokens.replace(",", "")), rel=1.5e-4)


def test_the_case_of_a_copied_latent() -> None:
    # 46.80 GiB a rank held 715,072 tokens: 70,274 bytes each, over eight ranks.
    each = kv_bytes_per_token(DEEPSEEK, "bf16", tensor_parallel=8)
    assert pytest.approx(each, rel=1e-4) == 46.80 * GIB / 715_072
