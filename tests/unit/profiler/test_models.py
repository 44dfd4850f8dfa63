"""Presets are the published models, and a name or a path leads to the right one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from stallscope.analyzers.cost.arithmetic import num_parameters
from stallscope.errors import InputError
from stallscope.profiler.models import RUNNABLE_PRESETS, load_model, preset_names
from stallscope.profiler.spec import ModelSpec

PRESETS = Path(__file__).parents[3] / "profiler" / "data" / "models"

# Totals as published with the checkpoints; the runnable three are worked out in
# test_runnable_presets_have_the_contract_shapes.
PUBLISHED = {
    "llama-7b": 6_738_415_616,
    "llama-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-7b": 7_615_616_512,
    "qwen3-0.6b": 596_049_920,
    "qwen3-8b": 8_190_735_360,
    "mistral-7b": 7_248_023_552,
    "mistral-7b-v0.1": 7_241_732_096,
}


def count_parameters(model: ModelSpec) -> int:
    """Count by hand: q, o; k, v; biases and norms; gate, up, down; two norms; tables; last norm."""
    query = model.num_heads * model.head_dim
    key = model.num_kv_heads * model.head_dim
    attention = 2 * model.hidden_size * query + 2 * model.hidden_size * key
    bias = query + 2 * key if model.qkv_bias else 0
    mlp = 3 * model.hidden_size * model.intermediate_size
    head_norms = 2 * model.head_dim if model.qk_norm else 0
    layer = attention + bias + head_norms + mlp + 2 * model.hidden_size
    tables = (1 if model.tied_embeddings else 2) * model.vocab_size * model.hidden_size
    return model.num_layers * layer + tables + model.hidden_size


@pytest.mark.parametrize(("name", "total"), PUBLISHED.items())
def test_preset_has_the_published_number_of_parameters(name: str, total: int) -> None:
    assert count_parameters(load_model(name)) == total


@pytest.mark.parametrize("name", preset_names())
def test_preset_counts_as_transformers_builds_it(name: str) -> None:
    import torch
    import transformers

    config = json.loads((PRESETS / f"{name}.json").read_text())
    family = config["architectures"][0].removesuffix("ForCausalLM")
    theirs = getattr(transformers, f"{family}Config")(**config)
    with torch.device("meta"):
        model = getattr(transformers, f"{family}ForCausalLM")(theirs)
    assert sum(p.numel() for p in model.parameters()) == count_parameters(load_model(name))


@pytest.mark.parametrize("name", preset_names())
def test_preset_positions_are_those_transformers_reads(name: str) -> None:
    import transformers

    config = json.loads((PRESETS / f"{name}.json").read_text())
    family = config["architectures"][0].removesuffix("ForCausalLM")
    theirs = getattr(transformers, f"{family}Config")(**config)
    ours = load_model(name)
    assert (ours.rope_theta, ours.rms_norm_eps) == (
        theirs.rope_parameters["rope_theta"],
        theirs.rms_norm_eps,
    )
    assert theirs.rope_parameters["rope_type"] == "default"
    assert ours.rope_scaling is None
    assert ours.max_position == theirs.max_position_embeddings


def test_runnable_presets_have_the_contract_shapes() -> None:
    shapes = {name: load_model(name) for name in RUNNABLE_PRESETS}
    assert {
        name: (
            *(m.hidden_size, m.intermediate_size, m.num_layers),
            *(m.num_heads, m.num_kv_heads, m.head_dim, m.vocab_size, m.tied_embeddings),
        )
        for name, m in shapes.items()
    } == {
        "tiny-26m": (512, 1408, 6, 8, 4, 64, 8192, False),
        "llama-125m": (768, 2048, 12, 12, 4, 64, 32000, False),
        "llama-1b": (2048, 5632, 22, 32, 4, 64, 32000, False),
    }
    assert {(m.max_position, m.rope_theta) for m in shapes.values()} == {(4096, 10_000.0)}
    # 6 x (2x512x512 + 2x512x256 + 3x512x1408 + 1024) + 2x8192x512 + 512
    assert count_parameters(shapes["tiny-26m"]) == 6 * 2_950_144 + 8_388_608 + 512


def test_presets_are_the_files_and_warn_of_nothing() -> None:
    assert set(preset_names()) == {file.stem for file in PRESETS.glob("*.json")}
    assert {name: load_model(name).warnings for name in preset_names()} == {
        name: () for name in preset_names()
    }


def test_facts_that_differ_between_presets() -> None:
    assert load_model("qwen2.5-0.5b").tied_embeddings
    assert load_model("qwen2.5-7b").qkv_bias
    assert not load_model("mistral-7b").qkv_bias
    assert load_model("mistral-7b").sliding_window is None
    assert load_model("mistral-7b-v0.1").sliding_window == 4096
    assert [load_model(f"qwen3-{n}").tied_embeddings for n in ("0.6b", "8b")] == [True, False]
    assert load_model("qwen3-0.6b").head_dim * 16 == 2048  # twice its hidden size
    assert load_model("qwen3-8b").qk_norm
    assert load_model("qwen3-8b").sliding_window is None
    assert load_model("llama-7b").dtype == "fp16"
    assert load_model("llama-3-8b").dtype == "bf16"
    assert load_model("tiny-26m").dtype is None
    assert load_model("llama-3-8b").eos_token_ids == (128001,)
    assert load_model("tiny-26m").eos_token_ids == ()


def test_preset_name_is_taken_without_case() -> None:
    assert load_model("LLaMA-7B") == load_model("llama-7b")


def test_folder_and_file_are_read_and_named(tmp_path: Path) -> None:
    folder = tmp_path / "my-model"
    folder.mkdir()
    shutil.copy(PRESETS / "tiny-26m.json", folder / "config.json")
    assert load_model(str(folder)).name == "my-model"
    assert load_model(str(folder / "config.json")).name == "my-model"
    assert load_model(str(PRESETS / "tiny-26m.json")) == load_model("tiny-26m")


def test_unknown_preset_lists_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'lama-7b' is no model preset.*did you mean llama-7b"):
        load_model("lama-7b")
    with pytest.raises(InputError, match=r"known: tiny-26m, .*mistral-7b"):
        load_model("zzzz")
    with pytest.raises(InputError, match="no model preset"):
        load_model("")


def test_missing_file_is_named(tmp_path: Path) -> None:
    for path in (tmp_path / "absent.json", tmp_path, tmp_path / "no" / "folder"):
        with pytest.raises(InputError, match=f"{tmp_path}.*: no such file; check the path"):
            load_model(str(path))


def test_path_too_long_is_an_input_error() -> None:
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        load_model("x" * 5000)


def test_corpus_models_have_the_published_parameters(corpus: Path) -> None:
    found = {
        file.stem: num_parameters(load_model(str(file)))
        for file in sorted((corpus / "models").glob("*.json"))
    }
    assert found == {
        "gpt-oss-120b": 116_829_156_672,
        "llama-3-8b": 8_030_261_248,
        "qwen2-7b": 7_615_616_512,
        "qwen2-72b": 72_706_203_648,
        "qwen2.5-32b": 32_763_876_352,
    }
