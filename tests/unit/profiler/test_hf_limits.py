"""What is not modelled is refused by name where it decides the costs, else named in a warning."""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.analyzers.cost.arithmetic import num_parameters
from stallscope.errors import InputError
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_config import model_from_config
from stallscope.profiler.hf_families import FAMILIES

BASE: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "vocab_size": 500,
    "max_position_embeddings": 32768,
}


def warnings(**changes: Any) -> tuple[str, ...]:
    return model_from_config(Fields("x.json", {**BASE, **changes}), "x").warnings


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"num_local_experts": 8}, "mixture of experts (num_local_experts=8)"),
        ({"num_experts": 128}, "mixture of experts (num_experts=128)"),
        ({"n_routed_experts": 256}, "mixture of experts (n_routed_experts=256)"),
        ({"kv_lora_rank": 512}, "multi-head latent attention (kv_lora_rank=512)"),
        ({"mamba_d_state": 16}, "linear attention or a state-space layer (mamba_d_state=16)"),
        ({"model_type": "mamba"}, "linear attention or a state-space layer (model_type mamba)"),
        ({"model_type": "zamba2"}, "linear attention or a state-space layer (model_type zamba2)"),
        ({"model_type": "lfm2"}, "linear attention or a state-space layer (model_type lfm2)"),
        (
            {"layer_types": ["linear_attention", "full_attention"]},
            "linear attention or a state-space layer (layer_types has linear_attention)",
        ),
        ({"is_encoder_decoder": True}, "an encoder-decoder (is_encoder_decoder)"),
        ({"model_type": "t5"}, "an encoder-decoder (model_type t5)"),
        ({"model_type": "gpt2"}, "an MLP without a gate (model_type gpt2)"),
        ({"text_config": {"hidden_size": 1}}, "a model of more than text (text_config)"),
        ({"attn_logit_softcapping": 50.0}, "soft-capped logits (attn_logit_softcapping)"),
        ({"final_logit_softcapping": 30.0}, "soft-capped logits (final_logit_softcapping)"),
    ],
)
def test_other_arithmetic_is_refused_by_name(changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        warnings(**changes)
    assert str(caught.value) == (
        f"x.json: {said} is not modelled yet; models of type {', '.join(FAMILIES)} are"
    )


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        (
            {"model_type": "minimax_m2", "num_local_experts": 256},
            "model_type minimax_m2 (mixture of experts: num_local_experts=256)",
        ),
        (
            {"model_type": "mistral3", "text_config": {"hidden_size": 1}},
            "model_type mistral3 (a model of more than text: text_config)",
        ),
    ],
)
def test_a_type_that_is_not_known_is_named_before_what_it_has(
    changes: dict[str, Any], said: str
) -> None:
    """Models of other types have experts too, and are modelled."""
    with pytest.raises(InputError) as caught:
        warnings(**changes)
    assert str(caught.value).startswith(f"x.json: {said} is not modelled yet; models of type llama")


def test_what_is_switched_off_is_not_refused() -> None:
    assert warnings(num_local_experts=0, kv_lora_rank=None, is_encoder_decoder=False) == ()


def test_family_comes_from_type_or_architecture() -> None:
    with pytest.raises(InputError, match="model_type olmo2 is not modelled yet; models of type"):
        warnings(model_type="olmo2")
    with pytest.raises(InputError, match="model_type is missing; say one of llama"):
        warnings(model_type=None)
    qwen = Fields("x", {**BASE, "model_type": None, "architectures": ["Qwen2ForCausalLM"]})
    assert model_from_config(qwen, "x").qkv_bias
    newer = Fields("x", {**BASE, "model_type": None, "architectures": ["Qwen3ForCausalLM"]})
    assert (model_from_config(newer, "x").qk_norm, model_from_config(qwen, "x").qk_norm) == (
        True,
        False,
    )


def test_quantisation_that_is_not_read_is_said_with_its_method() -> None:
    assert warnings(quantization_config={"quant_method": "bitsandbytes"}) == (
        "quantization_config (bitsandbytes) is not read: weights are counted at the dtype asked "
        "for, without scales and zero points",
    )
    assert warnings(quantization_config={"quant_method": "awq", "bits": 4}) == ()


def test_the_dtype_of_a_checkpoint_quantised_some_way_is_not_that_of_its_weights() -> None:
    plain = {**BASE, "torch_dtype": "bfloat16"}
    assert model_from_config(Fields("x", plain), "x").dtype == "bf16"
    packed = {**plain, "quantization_config": {"quant_method": "bitsandbytes"}}
    assert model_from_config(Fields("x", packed), "x").dtype is None


def test_biases_that_are_counted_and_not_run_are_said() -> None:
    assert warnings(attention_bias=True) == (
        "the bias on o_proj (attention_bias) is counted, but not run",
    )
    spec = model_from_config(Fields("x", {**BASE, "attention_bias": True, "mlp_bias": True}), "x")
    plain = model_from_config(Fields("x", BASE), "x")
    # q, k, v and o: 4 x 64. MLP: 160 + 160 + 64. In each of 3 layers.
    assert num_parameters(spec) - num_parameters(plain) == 3 * (4 * 64 + 384)
    assert warnings(mlp_bias=True) == ("the biases of the MLP (mlp_bias) are counted, but not run",)
    assert warnings(model_type="qwen2", attention_bias=True) == ()


def test_what_is_modelled_but_not_run_is_named() -> None:
    mixed = {"num_local_experts": 4, "model_type": "mixtral", "num_key_value_heads": 4}
    spec = model_from_config(Fields("x", {**BASE, **mixed}), "x")
    assert spec.not_runnable == "mixture of experts"
    assert model_from_config(Fields("x", BASE), "x").not_runnable is None


def test_other_activation_is_said() -> None:
    assert warnings(hidden_act="gelu") == (
        "hidden_act gelu is not modelled: silu is run; the costs are the same",
    )
    assert warnings(hidden_act="silu") == ()


def test_unknown_fields_are_named_together_and_harmless_ones_are_not() -> None:
    assert warnings(use_cache=True, bos_token_id=1, pretraining_tp=1, not_given=None) == ()
    assert warnings(logit_scale=0.5, embedding_multiplier=2.0, use_cache=True) == (
        "fields not known here and not modelled: embedding_multiplier, logit_scale",
    )
