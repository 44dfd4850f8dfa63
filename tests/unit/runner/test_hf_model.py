"""transformers' model: the builtin decoder's weights by seed, checkpoints, one-line refusals."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
import torch
from hf_pair import CONFIGS, LLAMA, SEED, VOCAB, EnginePair, write_config
from safetensors.torch import load_file, save_file

from stallscope.errors import InputError
from stallscope.profiler.models import load_model
from stallscope.runner.batch import Chunk
from stallscope.runner.decoder import build_decoder
from stallscope.runner.hf_model import HfModel, load_hf_model
from stallscope.runner.kv_pool import KvPool
from stallscope.runner.ragged import ragged
from stallscope.runner.weights import RandomTensors, tensor_shapes

CPU = torch.device("cpu")


@pytest.fixture(params=CONFIGS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> EnginePair:
    return EnginePair(write_config(tmp_path, CONFIGS[request.param]))


def test_weights_of_a_seed_are_the_builtin_decoder_s(pair: EnginePair) -> None:
    shapes = tensor_shapes(load_model(str(pair.folder)))
    ours = RandomTensors(SEED, torch.float32, CPU)
    theirs = dict(pair.hf_model().module.named_parameters())
    assert set(theirs) == set(shapes)
    for name, shape in shapes.items():
        assert torch.equal(theirs[name], ours.get(name, shape)), name


@torch.inference_mode()
def test_logits_are_the_builtin_decoder_s(pair: EnginePair) -> None:
    model, spec = pair.hf_model(), load_model(str(pair.folder))
    tokens = random.Random(1).choices(range(VOCAB), k=90)  # beyond llama-3's original 64
    ids = torch.tensor([tokens])
    theirs, _ = model.forward(ids, torch.ones_like(ids), torch.arange(90)[None], None)
    pool = KvPool(spec, 12, 8, "fp32", "cpu")
    pool.ensure(0, 90)
    ours = build_decoder(spec, seed=SEED).forward(ragged([Chunk(0, tokens, 0, True)], pool, CPU))
    assert ours.std() > 0.5
    assert (ours - theirs).abs().max().item() <= 1e-4


def test_linears_are_those_of_the_model_in_layer_order(tmp_path: Path) -> None:
    model = EnginePair(write_config(tmp_path, LLAMA)).hf_model()
    linears = model.linears()
    assert {name: len(ops) for name, ops in linears.items()} == {
        **dict.fromkeys(("qkv", "o", "gate_up", "down"), 2),
        "lm_head": 1,
    }
    attention = model.module.model.layers[1].self_attn
    x = torch.ones(3, 64)
    assert torch.equal(linears["qkv"][1](x), attention.v_proj(x))
    seen: list[str] = []
    for name in ("q_proj", "k_proj", "v_proj"):
        getattr(attention, name).register_forward_hook(lambda *_, name=name: seen.append(name))
    linears["qkv"][1](x)
    assert seen == ["q_proj", "k_proj", "v_proj"]


def load(name: Path, folder: Path | None) -> HfModel:
    spec = load_model(str(name))
    return load_hf_model(str(name), spec, folder=folder, dtype="fp32", device="cpu", seed=0)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    pair = EnginePair(write_config(tmp_path, LLAMA))
    pair.hf_model().module.save_pretrained(tmp_path)
    return tmp_path


def test_a_checkpoint_folder_is_loaded_as_it_is(checkpoint: Path) -> None:
    tensors = load_file(checkpoint / "model.safetensors")
    for name, parameter in load(checkpoint, checkpoint).module.named_parameters():
        assert torch.equal(parameter, tensors[name])


def test_a_config_file_without_weights_is_enough(tmp_path: Path) -> None:
    write_config(tmp_path, LLAMA)
    assert load(tmp_path / "config.json", None).module.num_parameters() > 0


def refusal(folder: Path, weights: Path | None) -> str:
    with pytest.raises(InputError) as caught:
        load(folder, weights)
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_missing_weights_are_not_made_up(checkpoint: Path) -> None:
    tensors = load_file(checkpoint / "model.safetensors")
    del tensors["model.norm.weight"], tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})
    message = refusal(checkpoint, checkpoint)
    assert "lack model.layers.1.mlp.up_proj.weight (2 tensors in all)" in message


def test_weights_of_another_shape(checkpoint: Path) -> None:
    tensors = load_file(checkpoint / "model.safetensors") | {"lm_head.weight": torch.ones(5, 64)}
    save_file(tensors, checkpoint / "model.safetensors", metadata={"format": "pt"})
    assert "transformers cannot load it" in refusal(checkpoint, checkpoint)


def test_a_file_that_is_no_checkpoint(checkpoint: Path) -> None:
    (checkpoint / "model.safetensors").write_bytes(b"not one")
    assert "transformers cannot load it" in refusal(checkpoint, checkpoint)


def changed(folder: Path, **fields: Any) -> Path:
    config = json.loads((folder / "config.json").read_text())
    return write_config(folder, config | fields)


def test_a_quantised_checkpoint(checkpoint: Path) -> None:
    changed(checkpoint, quantization_config={"quant_method": "gptq", "bits": 4})
    assert "quantised checkpoints are not run yet" in refusal(checkpoint, checkpoint)


def test_code_that_came_with_a_checkpoint_is_not_run(checkpoint: Path) -> None:
    changed(checkpoint, auto_map={"AutoModelForCausalLM": "evil.Model"})
    (checkpoint / "evil.py").write_text(f"open({str(checkpoint / 'ran')!r}, 'w').close()\n")
    assert type(load(checkpoint, checkpoint).module).__name__ == "LlamaForCausalLM"
    assert not (checkpoint / "ran").exists()
