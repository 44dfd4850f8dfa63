"""Shapes of published models, as their config.json files state them, and their parameters.

Only fields that decide costs are given; the totals are those published with the checkpoints.
"""

from __future__ import annotations

from typing import Any

_MIXTRAL = {"model_type": "mixtral", "num_experts_per_tok": 2, "num_local_experts": 8}
_V2 = {
    "model_type": "deepseek_v2",
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "n_shared_experts": 2,
    "num_experts_per_tok": 6,
    "first_k_dense_replace": 1,
    "moe_layer_freq": 1,
    "vocab_size": 102_400,
    "max_position_embeddings": 163_840,
}
_QWEN3_MOE = {
    "model_type": "qwen3_moe",
    "num_experts": 128,
    "num_experts_per_tok": 8,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "vocab_size": 151_936,
    "max_position_embeddings": 40_960,
}
_GPT_OSS = {
    "model_type": "gpt_oss",
    "head_dim": 64,
    "num_experts_per_tok": 4,
    "sliding_window": 128,
    "quantization_config": {"quant_method": "mxfp4"},
    "vocab_size": 201_088,
    "max_position_embeddings": 131_072,
}
_MAMBA = {"mamba_d_conv": 4, "mamba_expand": 2}
_NEMOTRON = {
    "model_type": "nemotron_h",
    "head_dim": 128,
    "mamba_head_dim": 64,
    "n_groups": 8,
    "ssm_state_size": 128,
    "conv_kernel": 4,
    "vocab_size": 131_072,
}
_GLM = {
    "model_type": "glm4_moe",
    "head_dim": 128,
    "attention_bias": True,
    "vocab_size": 151_552,
    "max_position_embeddings": 131_072,
    "num_nextn_predict_layers": 1,
}
_SIZES = (
    *("hidden_size", "intermediate_size", "num_hidden_layers"),
    *("num_attention_heads", "num_key_value_heads"),
)


def _shape(*sizes: int, **fields: Any) -> dict[str, Any]:
    return dict(zip(_SIZES, sizes, strict=True)) | fields


CONFIGS: dict[str, tuple[int, dict[str, Any]]] = {
    "mixtral-8x7b": (
        46_702_792_704,
        _shape(4096, 14336, 32, 32, 8, vocab_size=32000, max_position_embeddings=32768, **_MIXTRAL),
    ),
    "mixtral-8x22b": (
        140_620_634_112,
        _shape(6144, 16384, 56, 48, 8, vocab_size=32000, max_position_embeddings=65536, **_MIXTRAL),
    ),
    "qwen1.5-moe-a2.7b": (
        14_315_784_192,
        _shape(
            *(2048, 5632, 24, 16, 16),
            model_type="qwen2_moe",
            num_experts=60,
            num_experts_per_tok=4,
            moe_intermediate_size=1408,
            shared_expert_intermediate_size=5632,
            vocab_size=151_936,
            max_position_embeddings=8192,
        ),
    ),
    "qwen3-30b-a3b": (
        30_532_122_624,
        _shape(2048, 6144, 48, 32, 4, moe_intermediate_size=768, **_QWEN3_MOE),
    ),
    "qwen3-235b-a22b": (
        235_093_634_560,
        _shape(4096, 12288, 94, 64, 4, moe_intermediate_size=1536, **_QWEN3_MOE),
    ),
    "qwen3-next-80b-a3b": (
        79_674_391_296,
        _shape(
            *(2048, 5120, 48, 16, 2),
            model_type="qwen3_next",
            head_dim=256,
            num_experts=512,
            num_experts_per_tok=10,
            moe_intermediate_size=512,
            shared_expert_intermediate_size=512,
            vocab_size=151_936,
            max_position_embeddings=262_144,
        ),
    ),
    "deepseek-v2-lite": (
        15_706_484_224,
        _shape(
            *(2048, 10944, 27, 16, 16),
            q_lora_rank=None,
            n_routed_experts=64,
            moe_intermediate_size=1408,
            **_V2,
        ),
    ),
    "deepseek-v2": (
        235_741_434_880,
        _shape(
            *(5120, 12288, 60, 128, 128),
            q_lora_rank=1536,
            n_routed_experts=160,
            moe_intermediate_size=1536,
            **_V2,
        ),
    ),
    # Without its draft layer, and without the 58 x 256 biases of the routers, which are no weights.
    "deepseek-v3": (
        671_026_404_352,
        _shape(
            *(7168, 18432, 61, 128, 128),
            model_type="deepseek_v3",
            vocab_size=129_280,
            max_position_embeddings=163_840,
            num_experts_per_tok=8,
        ),
    ),
    "gemma-2b": (
        2_506_172_416,
        _shape(2048, 16384, 18, 8, 1, model_type="gemma", vocab_size=256_000, head_dim=256),
    ),
    "gemma-2-2b": (
        2_614_341_888,
        _shape(2304, 9216, 26, 8, 4, model_type="gemma2", vocab_size=256_000, head_dim=256),
    ),
    "gemma-2-27b": (
        27_227_128_320,
        _shape(4608, 36864, 46, 32, 16, model_type="gemma2", vocab_size=256_000, head_dim=128),
    ),
    "gemma-3-1b": (
        999_885_952,
        _shape(
            *(1152, 6912, 26, 4, 1),
            model_type="gemma3_text",
            vocab_size=262_144,
            head_dim=256,
            sliding_window=512,
            sliding_window_pattern=6,
            max_position_embeddings=32_768,
        ),
    ),
    "gpt-oss-20b": (
        20_914_757_184,
        _shape(2880, 2880, 24, 64, 8, num_local_experts=32, **_GPT_OSS),
    ),
    "gpt-oss-120b": (
        116_829_156_672,
        _shape(2880, 2880, 36, 64, 8, num_local_experts=128, **_GPT_OSS),
    ),
    "phi-2": (
        2_779_683_840,
        _shape(
            2560,
            10240,
            32,
            32,
            32,
            model_type="phi",
            vocab_size=51_200,
            max_position_embeddings=2048,
        ),
    ),
    "phi-3-mini-4k": (
        3_821_079_552,
        _shape(
            *(3072, 8192, 32, 32, 32),
            model_type="phi3",
            vocab_size=32_064,
            max_position_embeddings=4096,
            sliding_window=2047,
        ),
    ),
    "phi-4": (
        14_659_507_200,
        _shape(
            *(5120, 17920, 40, 40, 10),
            model_type="phi3",
            vocab_size=100_352,
            max_position_embeddings=16_384,
        ),
    ),
    "phi-3.5-moe": (
        41_873_153_344,
        _shape(
            *(4096, 6400, 32, 32, 8),
            model_type="phimoe",
            attention_bias=True,
            lm_head_bias=True,
            num_local_experts=16,
            vocab_size=32_064,
            max_position_embeddings=131_072,
        ),
    ),
    # Without their draft layers.
    "glm-4.5-air": (
        106_852_245_504,
        _shape(
            *(4096, 10944, 46, 96, 8),
            use_qk_norm=False,
            n_routed_experts=128,
            moe_intermediate_size=1408,
            **_GLM,
        ),
    ),
    "glm-4.5": (
        352_797_814_784,
        _shape(
            *(5120, 12288, 92, 96, 8),
            use_qk_norm=True,
            n_routed_experts=160,
            moe_intermediate_size=1536,
            first_k_dense_replace=3,
            **_GLM,
        ),
    ),
    "bamba-9b": (
        9_780_235_392,
        _shape(
            *(4096, 14336, 32, 32, 8),
            model_type="bamba",
            attn_layer_indices=[9, 18, 27],
            mamba_n_heads=128,
            mamba_d_head=64,
            mamba_d_state=128,
            vocab_size=128_256,
            max_position_embeddings=262_144,
            **_MAMBA,
        ),
    ),
    "granite-4.0-h-tiny": (
        6_939_037_248,
        _shape(
            *(1536, 512, 40, 12, 4),
            model_type="granitemoehybrid",
            shared_intermediate_size=1024,
            num_local_experts=64,
            num_experts_per_tok=6,
            mamba_n_heads=48,
            mamba_d_head=64,
            mamba_d_state=128,
            vocab_size=100_352,
            max_position_embeddings=131_072,
            tie_word_embeddings=True,
            layer_types=["attention" if n in (5, 15, 25, 35) else "mamba" for n in range(40)],
            **_MAMBA,
        ),
    ),
    "falcon-h1-7b": (
        7_585_513_568,
        _shape(
            *(3072, 12288, 44, 12, 2),
            model_type="falcon_h1",
            head_dim=128,
            mamba_d_ssm=3072,
            mamba_n_heads=24,
            mamba_d_head=128,
            mamba_d_state=256,
            vocab_size=130_048,
            max_position_embeddings=262_144,
            **_MAMBA,
        ),
    ),
    "nemotron-h-8b": (
        8_100_852_736,
        _shape(
            *(4096, 21504, 52, 32, 8),
            hybrid_override_pattern="M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M*-M-M-M-M-M-",
            mamba_num_heads=128,
            max_position_embeddings=8192,
            **_NEMOTRON,
        ),
    ),
    "nemotron-3-nano-30b-a3b": (
        31_577_937_344,
        _shape(
            *(2688, 1856, 52, 32, 2),
            hybrid_override_pattern="MEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEM*EMEMEMEM*EMEMEMEME",
            mamba_num_heads=64,
            n_routed_experts=128,
            num_experts_per_tok=6,
            moe_intermediate_size=1856,
            moe_shared_expert_intermediate_size=3712,
            max_position_embeddings=262_144,
            **_NEMOTRON,
        ),
    ),
    "jamba-v0.1": (
        51_570_323_328,
        _shape(
            *(4096, 14336, 32, 32, 8),
            model_type="jamba",
            mamba_d_state=16,
            mamba_dt_rank=256,
            vocab_size=65_536,
            max_position_embeddings=262_144,
            **_MAMBA,
        ),
    ),
}
