"""Weights by seed and from folders that do not fit."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from stallscope.errors import InputError, UsageError
from stallscope.profiler.spec import ModelSpec
from stallscope.runner.decoder import build_decoder
from stallscope.runner.weights import SafetensorsFolder, layer_shapes, tensor_shapes

SPEC = ModelSpec("w", 32, 48, 2, 4, 2, 8, 50, 256)
CPU = torch.device("cpu")


def _tensors(spec: ModelSpec) -> dict[str, torch.Tensor]:
    return {name: torch.zeros(shape) for name, shape in tensor_shapes(spec).items()}


def _refusal(folder: Path, spec: ModelSpec = SPEC) -> str:
    with pytest.raises(InputError) as caught:
        SafetensorsFolder(folder, spec, torch.float32, CPU)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_shapes_by_hand() -> None:
    shapes = layer_shapes(replace(SPEC, qkv_bias=True))
    assert shapes["self_attn.q_proj.weight"] == (32, 32)  # 4 heads x 8
    assert shapes["self_attn.k_proj.weight"] == (16, 32)  # 2 heads x 8
    assert shapes["self_attn.v_proj.bias"] == (16,)
    assert shapes["mlp.down_proj.weight"] == (32, 48)
    assert len(tensor_shapes(SPEC)) == 3 + 2 * 9
    assert len(tensor_shapes(replace(SPEC, tied_embeddings=True))) == 2 + 2 * 9


def test_missing_tensors_are_named(tmp_path: Path) -> None:
    tensors = _tensors(SPEC)
    del tensors["model.layers.1.mlp.up_proj.weight"], tensors["model.norm.weight"]
    save_file(tensors, tmp_path / "model.safetensors")
    expected = "missing: model.layers.1.mlp.up_proj.weight, model.norm.weight; give"
    assert expected in _refusal(tmp_path)


def test_many_are_counted(tmp_path: Path) -> None:
    save_file(_tensors(replace(SPEC, num_layers=3)), tmp_path / "model.safetensors")
    message = _refusal(tmp_path)
    assert "unknown: model.layers.2." in message
    assert "and 6 more" in message  # 9 tensors of the third layer, three of them named


def test_misshaped_tensors_are_named(tmp_path: Path) -> None:
    tensors = _tensors(SPEC) | {"lm_head.weight": torch.zeros(51, 32)}
    save_file(tensors, tmp_path / "model.safetensors")
    assert "misshaped: lm_head.weight is (51, 32) instead of (50, 32)" in _refusal(tmp_path)


def test_redundant_tensors_are_let_be(tmp_path: Path) -> None:
    extra = {"model.layers.0.self_attn.rotary_emb.inv_freq": torch.zeros(4)}
    save_file(_tensors(SPEC) | extra, tmp_path / "model.safetensors")
    tied = replace(SPEC, tied_embeddings=True)  # whose file holds the head all the same
    build_decoder(tied, folder=tmp_path)


def test_absent_and_broken_files(tmp_path: Path) -> None:
    assert "model.safetensors: no such file" in _refusal(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"\x08\0\0\0\0\0\0\0not json")
    assert "model.safetensors: not a safetensors file" in _refusal(tmp_path)
    index = tmp_path / "model.safetensors.index.json"
    index.write_text("[1]")
    assert "model.safetensors.index.json: not an index" in _refusal(tmp_path)
    index.write_text(json.dumps({"weight_map": {"model.norm.weight": "part-2.safetensors"}}))
    assert "part-2.safetensors: no such file" in _refusal(tmp_path)


def test_a_seed_repeats_its_model() -> None:
    x = torch.ones(1, 32)
    first, second, other = (
        build_decoder(SPEC, seed=seed).linears()["gate_up"][1](x) for seed in (3, 3, 4)
    )
    assert torch.equal(first, second)
    assert not torch.equal(first, other)


def test_unknown_dtype() -> None:
    with pytest.raises(UsageError, match="dtype int4: the runner computes in fp32, bf16, fp16"):
        build_decoder(SPEC, dtype="int4")
