"""Models of every family that is modelled, counted as transformers builds them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from family_configs import CONFIGS

from stallscope.analyzers.cost.arithmetic import num_parameters, weight_bytes
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_config import model_from_config
from stallscope.profiler.hf_families import FAMILIES, RUNNABLE
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec


def spec_of(name: str) -> ModelSpec:
    return model_from_config(Fields(f"{name}.json", CONFIGS[name][1]), name)


def theirs(config: dict[str, Any]) -> Any:
    """Build the model by transformers, without memory for its weights."""
    import torch
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    fields = {k: v for k, v in config.items() if k not in ("model_type", "quantization_config")}
    built = CONFIG_MAPPING[config["model_type"]](pad_token_id=0, **fields)
    with torch.device("meta"):
        return transformers.AutoModelForCausalLM.from_config(built)


@pytest.mark.parametrize("name", CONFIGS)
def test_parameters_are_the_published_ones_and_those_of_transformers(name: str) -> None:
    total, config = CONFIGS[name]
    assert num_parameters(spec_of(name)) == total
    assert sum(p.numel() for p in theirs(config).parameters()) == total


@pytest.mark.parametrize("name", CONFIGS)
def test_nothing_in_a_published_config_is_left_unread(name: str, tmp_path: Path) -> None:
    theirs(CONFIGS[name][1]).config.save_pretrained(tmp_path)
    saved, ours = load_model(str(tmp_path)), spec_of(name)
    assert num_parameters(saved) == num_parameters(ours)
    assert (saved.local_layers, saved.local_window, saved.sliding_window) == (
        *(ours.local_layers, ours.local_window),
        ours.sliding_window,
    )
    assert ours.warnings == ()
    assert saved.warnings == ()


def test_every_family_is_among_them() -> None:
    found = {config["model_type"] for _, config in CONFIGS.values()}
    assert found == set(FAMILIES) - set(RUNNABLE)
    assert all(spec_of(name).not_runnable for name in CONFIGS)


def test_glm_4_7_flash_is_a_deepseek_of_its_own_sizes(tmp_path: Path) -> None:
    config = {
        **dict.fromkeys(("num_attention_heads", "num_key_value_heads"), 20),
        "model_type": "glm4_moe_lite",
        "hidden_size": 2048,
        "intermediate_size": 10240,
        "num_hidden_layers": 47,
        "q_lora_rank": 768,
        "kv_lora_rank": 512,
        "qk_nope_head_dim": 192,
        "qk_rope_head_dim": 64,
        "v_head_dim": 256,
        "n_routed_experts": 64,
        "num_experts_per_tok": 4,
        "moe_intermediate_size": 1536,
        "first_k_dense_replace": 1,
        "vocab_size": 154_880,
        "max_position_embeddings": 202_752,
        "num_nextn_predict_layers": 1,
    }
    built = theirs(config)
    total = sum(p.numel() for p in built.parameters())
    built.config.save_pretrained(tmp_path)
    saved = load_model(str(tmp_path))
    spec = model_from_config(Fields("x.json", config), "x")
    assert num_parameters(spec) == num_parameters(saved) == total == 29_943_390_976
    assert (spec.draft_layers, spec.warnings, saved.warnings) == (1, (), ())


def test_windows_of_layers() -> None:
    # Every second layer of gemma-2 and gpt-oss, every sixth of gemma-3 sees everything.
    specs = {name: spec_of(name) for name in CONFIGS}
    near = {n: (s.local_layers, s.local_window) for n, s in specs.items() if s.local_layers}
    assert near == {
        "gemma-2-2b": (13, 4096),
        "gemma-2-27b": (23, 4096),
        "gemma-3-1b": (22, 512),
        "gpt-oss-20b": (12, 128),
        "gpt-oss-120b": (18, 128),
    }
    assert spec_of("phi-3-mini-4k").sliding_window == 2047


@pytest.mark.parametrize(
    ("name", "bytes"),
    # The sizes of the published checkpoints' tensors: experts in MXFP4, the rest in bf16.
    [("gpt-oss-20b", 13_761_264_768), ("gpt-oss-120b", 65_248_815_744)],
)
def test_mxfp4_checkpoints_take_their_published_bytes(name: str, bytes: int) -> None:
    spec = spec_of(name)
    assert spec.dtype == "mxfp4"
    assert weight_bytes(spec, "mxfp4") == bytes


def test_the_language_model_of_a_model_of_images_is_counted() -> None:
    """gemma-3-4b: its text_config leaves to defaults what gemma3_text has by itself."""
    text = {"hidden_size": 2560, "intermediate_size": 10240, "num_hidden_layers": 34}
    config = {
        "model_type": "gemma3",
        "text_config": {**text, "model_type": "gemma3_text", "sliding_window": 1024},
        "vision_config": {"hidden_size": 1152},
    }
    spec = model_from_config(Fields("x.json", config), "x")
    built = theirs({**text, "model_type": "gemma3_text", "sliding_window": 1024})
    assert num_parameters(spec) == sum(p.numel() for p in built.parameters())
    assert spec.warnings == ("vision_config: only the language model is counted",)


@pytest.mark.parametrize(
    ("given", "dtype", "stored"),
    [
        ({"quant_method": "awq", "bits": 4, "group_size": 64}, "int4", ("awq", 64, ())),
        ({"quant_method": "gptq", "bits": 8, "group_size": -1}, "int8", ("gptq", 128, ())),
        (
            {"quant_method": "fp8", "weight_block_size": [128, 128]},
            "fp8",
            ("fp8", 128, (128, 128)),
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {"weights": {"num_bits": 4, "type": "int", "group_size": 32}}
                },
            },
            "int4",
            ("compressed-tensors", 32, ()),
        ),
    ],
)
def test_stored_formats_are_read(
    given: dict[str, Any], dtype: str, stored: tuple[str, int, tuple[int, ...]]
) -> None:
    config = {**CONFIGS["mixtral-8x7b"][1], "torch_dtype": "bfloat16"}
    spec = model_from_config(Fields("x", {**config, "quantization_config": given}), "x")
    assert spec.dtype == dtype
    assert spec.quantization is not None
    found = spec.quantization
    assert (found.method, found.group_size, found.block) == stored
    assert spec.warnings == ()
