"""Layers of models that mix Mamba with attention, as config.json files name them."""

from __future__ import annotations

from typing import Any

import pytest
from family_configs import CONFIGS

from stallscope.errors import InputError
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_config import model_from_config
from stallscope.profiler.spec import ModelSpec


def spec_of(name: str, **changes: Any) -> ModelSpec:
    return model_from_config(Fields("x.json", {**CONFIGS[name][1], **changes}), name)


@pytest.mark.parametrize(
    ("name", "attention", "mamba", "mlps", "experts"),
    [
        ("bamba-9b", 3, 29, 32, 0),
        ("granite-4.0-h-tiny", 4, 36, 40, 40),
        ("falcon-h1-7b", 44, 44, 44, 0),  # both in each layer
        ("nemotron-h-8b", 4, 24, 24, 0),  # 52 blocks, an MLP is one of them
        ("nemotron-3-nano-30b-a3b", 6, 23, 23, 23),
        ("jamba-v0.1", 4, 28, 32, 16),  # one layer in eight attends, every second has experts
    ],
)
def test_layers_of_each_kind(
    name: str, attention: int, mamba: int, mlps: int, experts: int
) -> None:
    spec = spec_of(name)
    assert spec.state_space is not None
    assert (spec.attention_layers, spec.state_space.layers) == (attention, mamba)
    assert spec.mlp_layers == mlps
    assert (0 if spec.mixture is None else spec.mixture.layers) == experts
    assert spec.blocks == attention + mamba + mlps


def test_granite_without_experts_has_the_mlp_that_all_tokens_share() -> None:
    spec = spec_of("granite-4.0-h-tiny", num_local_experts=0, num_experts_per_tok=0)
    assert (spec.mixture, spec.intermediate_size) == (None, 1024)


def test_nvidia_s_own_name_of_the_head_size_is_read() -> None:
    config = {**CONFIGS["nemotron-h-8b"][1], "attention_head_dim": 64}
    del config["head_dim"]
    spec = model_from_config(Fields("x.json", config), "x")
    assert (spec.head_dim, spec.warnings) == (64, ())
    # Where both are there, transformers reads the first.
    assert spec_of("nemotron-h-8b", attention_head_dim=64).head_dim == 128


def test_the_number_of_layers_is_that_of_their_list() -> None:
    """As transformers saves a nemotron_h: a list, and no num_hidden_layers."""
    kinds = ["linear_attention", "mlp", "full_attention", "moe"]
    changes = {"hybrid_override_pattern": None, "num_hidden_layers": None}
    spec = spec_of("nemotron-h-8b", layers_block_type=kinds, **changes)
    assert (spec.num_layers, spec.attention_layers, spec.mlp_layers) == (4, 1, 2)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("nemotron-h-8b", {"hybrid_override_pattern": "MX"}, "hybrid_override_pattern may hold"),
        ("nemotron-h-8b", {"num_hidden_layers": 51}, "has 52 layers, num_hidden_layers 51"),
        ("granite-4.0-h-tiny", {"layer_types": ["mamba"]}, "names 1 layers, num_hidden_layers 40"),
        ("granite-4.0-h-tiny", {"layer_types": ["sliding_attention"] * 40}, "must be a list of"),
        ("jamba-v0.1", {"attn_layer_offset": 9}, "must be a whole number below the period 8"),
        ("bamba-9b", {"attn_layer_indices": 3}, "attn_layer_indices must be a list"),
    ],
)
def test_what_makes_no_sense_is_refused(name: str, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        spec_of(name, **changes)
