"""What a quantised checkpoint leaves as it was keeps its 16 bits, in memory and in a step."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from family_configs import CONFIGS

from stallscope.analyzers.cost.arithmetic import linears_of, step_weight_bytes, weight_bytes
from stallscope.errors import InputError
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_config import model_from_config
from stallscope.profiler.spec import ModelSpec, Subject
from stallscope.profiler.subject_json import subject_from_json, subject_to_json

# As Kimi-K2-Thinking's config.json says it.
KIMI = {
    "model_type": "kimi_k2",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 61,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "vocab_size": 163_840,
    "max_position_embeddings": 262_144,
    "n_routed_experts": 384,
    "num_experts_per_tok": 8,
    "moe_intermediate_size": 2048,
    "n_shared_experts": 1,
    "first_k_dense_replace": 1,
    "kv_lora_rank": 512,
    "q_lora_rank": 1536,
    "qk_nope_head_dim": 128,
    "qk_rope_head_dim": 64,
    "v_head_dim": 128,
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "config_groups": {
            "group_0": {
                "targets": ["Linear"],
                "weights": {"num_bits": 4, "type": "int", "group_size": 32, "symmetric": True},
            }
        },
        "ignore": [
            "lm_head",
            "re:.*self_attn.*",
            "re:.*shared_experts.*",
            "re:.*mlp\\.(gate|up|gate_up|down)_proj.*",
        ],
    },
}
_QUERIES = 7168 * 1536 + 1536 * 64 * (128 + 64)
_LATENT = 7168 * (512 + 64) + 512 * 64 * (128 + 128)
KIMI_ATTENTION = 61 * (_QUERIES + _LATENT + 64 * 128 * 7168)
KIMI_SHARED = 60 * 3 * 7168 * 2048
KIMI_DENSE = 3 * 7168 * 18432
KIMI_ROUTERS = 60 * 7168 * 384
EXPERT = 3 * 7168 * 2048 * (0.5 + 2 / 32)  # half a byte, a scale of 2 bytes for 32, no zero points


def read(config: dict[str, Any], **quantization: Any) -> ModelSpec:
    given = {"quantization_config": quantization} if quantization else {}
    return model_from_config(Fields("config.json", {**config, **given}), "x")


def kept(spec: ModelSpec) -> dict[str, int]:
    """Return in how many layers each of the model's matrices is plain."""
    assert spec.quantization is not None
    own = {linear.name for linear in linears_of(spec)}
    return {k.linear: k.layers for k in spec.quantization.plain if k.linear in own}


def test_kimi_k2_thinking_has_its_experts_alone_in_4_bits() -> None:
    spec = read(KIMI)
    assert spec.dtype == "int4"
    norms = (2 * 61 + 1) * 7168 + 61 * (512 + 1536)
    tables = 2 * 163_840 * 7168
    plain = KIMI_ATTENTION + KIMI_SHARED + KIMI_DENSE + KIMI_ROUTERS + tables + norms
    assert weight_bytes(spec, "int4") == pytest.approx(60 * 384 * EXPERT + 2 * plain, rel=1e-12)


def test_one_token_of_kimi_k2_thinking_reads_mostly_16_bits() -> None:
    plain = KIMI_ATTENTION + KIMI_SHARED + KIMI_DENSE + KIMI_ROUTERS + 163_840 * 7168
    by_hand = 60 * 8 * EXPERT + 2 * plain
    assert step_weight_bytes(read(KIMI), "int4") == pytest.approx(by_hand, rel=1e-12)
    assert 2 * plain > 60 * 8 * EXPERT  # 21.1 GB to 11.9 GB


def test_a_list_holds_for_the_checkpoint_s_own_format() -> None:
    spec = read(KIMI)
    assert spec.quantization is not None
    unlisted = dataclasses.replace(spec.quantization, plain=())
    other = dataclasses.replace(spec, quantization=unlisted)
    assert weight_bytes(spec, "fp8") == weight_bytes(other, "fp8")
    assert weight_bytes(spec, "int4") > weight_bytes(other, "int4")


DEEPSEEK_ATTENTION = ("q_a_proj", "q_b_proj", "kv_a_proj", "kv_b_proj", "o_proj")
HEADS = ("q_proj", "k_proj", "v_proj", "o_proj")
EXPERTS = ("expert_gate_proj", "expert_up_proj", "expert_down_proj")
SHARED = ("shared_gate_proj", "shared_up_proj", "shared_down_proj")


@pytest.mark.parametrize(
    ("model", "listed", "expected"),
    [
        # A name is no part of a longer one: "gate" is the router, not gate_proj.
        ("mixtral-8x7b", {"quant_method": "awq", "modules_to_not_convert": ["gate"]}, {}),
        (
            "mixtral-8x7b",
            {"quant_method": "awq", "modules_to_not_convert": ["self_attn.", "mlp"]},
            dict.fromkeys(HEADS, 32),
        ),
        (
            "deepseek-v3",
            {
                "quant_method": "modelopt",
                "quant_algo": "NVFP4",
                "ignore": ["lm_head", *(f"model.layers.{n}.self_attn*" for n in range(61))],
            },
            dict.fromkeys(DEEPSEEK_ATTENTION, 61),
        ),
        # All of layer 0, which has a plain MLP and no experts.
        (
            "deepseek-v3",
            {"quant_method": "fp8", "modules_to_not_convert": ["model.layers.0"]},
            dict.fromkeys((*DEEPSEEK_ATTENTION, "gate_proj", "up_proj", "down_proj"), 1),
        ),
        (
            "qwen3-30b-a3b",
            {
                "quant_method": "fp8",
                "modules_to_not_convert": ["lm_head", "model.layers.0.mlp.gate"],
            },
            {},
        ),
        (
            "qwen3-30b-a3b",
            {"quant_method": "gptq", "bits": 4, "dynamic": {"-:.*\\.mlp\\.experts\\.": {}}},
            dict.fromkeys(EXPERTS, 48),
        ),
        # Qwen's own name of it has no plural.
        (
            "qwen3-next-80b-a3b",
            {"quant_method": "fp8", "modules_to_not_convert": ["mlp.shared_experts"]},
            {},
        ),
        (
            "qwen3-next-80b-a3b",
            {
                "quant_method": "fp8",
                "modules_to_not_convert": [
                    "mlp.shared_expert",
                    *(f"model.layers.{n}.linear_attn.in_proj_ba" for n in (0, 1, 2)),
                ],
            },
            {**dict.fromkeys(SHARED, 48), "delta_ba": 3},
        ),
        # Layer 5 of "MEMEM*…" is attention, layer 0 Mamba.
        (
            "nemotron-3-nano-30b-a3b",
            {
                "quant_method": "modelopt",
                "quant_algo": "FP8",
                "ignore": ["backbone.layers.5.mixer*", "backbone.layers.0.mixer.in_proj"],
            },
            {**dict.fromkeys(HEADS, 1), "state_in": 1},
        ),
    ],
)
def test_lists_as_checkpoints_write_them(
    model: str, listed: dict[str, Any], expected: dict[str, int]
) -> None:
    assert kept(read(CONFIGS[model][1], **listed)) == expected


def test_some_layers_of_a_matrix() -> None:
    config = {
        **{"model_type": "llama", "hidden_size": 64, "intermediate_size": 160},
        **{"num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 128},
        "max_position_embeddings": 512,
    }
    whole = read(config, quant_method="fp8")
    spec = read(
        config, quant_method="fp8", modules_to_not_convert=["model.layers.0.self_attn.q_proj"]
    )
    # One of three of 64 x 64: 2 bytes an element instead of 1 and a scale of 4 bytes.
    more = 64 * 64 * 2 - (64 * 64 + 4)
    assert weight_bytes(spec, "fp8") - weight_bytes(whole, "fp8") == pytest.approx(more)


def test_gpt_oss_own_list_says_what_mxfp4_is_anyway() -> None:
    listed = ["model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens"]
    _, config = CONFIGS["gpt-oss-20b"]
    spec = read(config, quant_method="mxfp4", modules_to_not_convert=[*listed, "lm_head"])
    assert weight_bytes(spec, "mxfp4") == weight_bytes(read(config), "mxfp4")


def test_mxfp4_of_another_maker_follows_its_own_list() -> None:
    weights = {"num_bits": 4, "type": "float", "group_size": 32}
    groups = {"config_groups": {"group_0": {"weights": weights}}}
    spec = read(KIMI, quant_method="compressed-tensors", **groups)
    listed = read(KIMI, quant_method="compressed-tensors", ignore=["re:.*self_attn.*"], **groups)
    # Half a byte and a byte for 32, against 2 bytes.
    more = KIMI_ATTENTION * (2 - 0.5 - 1 / 32)
    assert weight_bytes(listed, "mxfp4") - weight_bytes(spec, "mxfp4") == pytest.approx(more)


def test_it_is_kept_in_a_capture() -> None:
    subject = Subject(model=read(KIMI))
    assert subject_from_json(subject_to_json(subject)) == subject


@pytest.mark.parametrize(
    ("listed", "complaint"),
    [
        ("lm_head", "ignore must be a list of names"),
        ([1], "ignore must be a list of names"),
        (["re:("], r"pattern \( is no regular expression"),
    ],
)
def test_lists_that_are_none(listed: object, complaint: str) -> None:
    with pytest.raises(InputError, match=complaint):
        read(CONFIGS["mixtral-8x7b"][1], quant_method="awq", ignore=listed)
