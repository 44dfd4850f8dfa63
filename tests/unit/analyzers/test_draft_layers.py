"""The layers of a model that draft its next tokens, against published sizes and by hand."""

from __future__ import annotations

import dataclasses

import pytest
from step_rows import TINY

from stallscope.analyzers.cost.arithmetic import num_parameters, parameter_counts, weight_bytes
from stallscope.analyzers.cost.draft import draft_layer
from stallscope.analyzers.cost.kv_bytes import kv_bytes_per_token
from stallscope.analyzers.cost.operators import decode_shape
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.cost.speculation import checking_shape, speculate
from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.planner import plan
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.devices import load_device
from stallscope.profiler.hf_config import model_from_config
from stallscope.profiler.spec import ModelSpec

DEEPSEEK = {
    "model_type": "deepseek_v3",
    "hidden_size": 7168,
    "intermediate_size": 18432,
    "num_hidden_layers": 61,
    "num_attention_heads": 128,
    "vocab_size": 129_280,
    "max_position_embeddings": 163_840,
    "num_experts_per_tok": 8,
    "num_nextn_predict_layers": 1,
    "torch_dtype": "bfloat16",
}
# The shape of Qwen3.6-35B-A3B, whose draft layer is like that of qwen3-next.
QWEN = {
    "model_type": "qwen3_next",
    "hidden_size": 2048,
    "intermediate_size": 5632,
    "num_hidden_layers": 40,
    "num_attention_heads": 16,
    "vocab_size": 248_320,
    "max_position_embeddings": 262_144,
    "num_experts": 256,
    "num_experts_per_tok": 8,
}


def read(config: dict[str, object]) -> ModelSpec:
    return model_from_config(Fields("x.json", config), "x")


def drafts_of(spec: ModelSpec) -> ModelSpec:
    found = draft_layer(spec)
    assert found is not None
    return found


def test_deepseek_v3_s_is_what_its_authors_publish() -> None:
    """README_WEIGHTS.md: 11.5 billion of its own (257 · 3 · 7168 · 2048 are experts).

    With copies of both tables and a scale for 128 x 128 weights the files hold 685 billion.
    """
    spec = read(DEEPSEEK)
    drafts = drafts_of(spec)
    own = num_parameters(drafts) - parameter_counts(drafts)["draft_in"]
    assert own / 1e9 == pytest.approx(11.5, abs=0.05)
    in_file = num_parameters(spec) + num_parameters(drafts) + 2 * 7168 * 129_280
    assert round(in_file * (1 + 1 / 128**2) / 1e9) == 685


def test_qwen_s_takes_the_bytes_of_the_tensors_that_are_published() -> None:
    """huggingface.co/guru87/Qwen3.6-35B-A3B-MTP: 19 tensors in bf16, 1611 MiB, no table."""
    spec = read(QWEN)
    assert spec.draft_layers == 1
    assert round(weight_bytes(drafts_of(spec), "bf16") / 2**20) == 1611


def test_a_layer_by_hand() -> None:
    drafts = drafts_of(dataclasses.replace(TINY, draft_layers=1))
    attention, mlp = 64 * 64 * 2 + 64 * 32 * 2, 3 * 64 * 160
    # The product that joins two rows of 64; norms of both, of the layer, and the last.
    assert num_parameters(drafts) == attention + mlp + 128 * 64 + 5 * 64
    assert draft_layer(TINY) is None
    # The head is the model's own, and read for each drafted token.
    machine = Machine(1e15, 1e6, "datasheet")
    time = CostModel(drafts, "fp16", "fp16", machine).step_time(decode_shape(1, 1))
    read_once = attention + mlp + 128 * 64 + 64 * 256
    # In and out: joined 192, q 128, k and v 96 each, o 128, gate and up 224 each, down, head 320.
    moved = 192 + 128 + 2 * 96 + 128 + 3 * 224 + 320
    assert time.weights == pytest.approx(2 * (read_once + moved) / 1e6)


def test_drafting_takes_in_what_was_checked_then_a_token_at_a_time() -> None:
    cost = CostModel(TINY, "fp16", "fp16", Machine(1e9, 1e6, "datasheet"))
    drafts = dataclasses.replace(cost, spec=drafts_of(dataclasses.replace(TINY, draft_layers=1)))
    found = speculate(cost, batch=2, context=10, drafted=3, acceptance=0.5, draft=drafts)
    first = dataclasses.replace(checking_shape(2, 10, 3), logit_rows=2)
    later = drafts.step_time(decode_shape(2, 10)).floor
    assert found.draft_s == pytest.approx(drafts.step_time(first).floor + 2 * later)


def test_a_plan_counts_the_layer_only_where_it_drafts() -> None:
    spec = read(DEEPSEEK)
    options = PlanOptions(
        spec, load_device("h200-sxm"), 16, dtype="fp8", input_tokens=512, output_tokens=256
    )
    alone = plan(options)
    assert (alone.memory.draft_weights_bytes, alone.speculation) == (0, None)
    assert any("has a layer to draft tokens, in no figure here" in note for note in alone.notes)
    with_it = plan(dataclasses.replace(options, drafted=1))
    drafts = drafts_of(spec)
    assert with_it.memory.draft_weights_bytes == int(
        weight_bytes(drafts, "fp8", tensor_parallel=16)
    )
    # 48 blocks of 16 tokens, one more layer's latent of 576 elements in 16 bit.
    assert kv_bytes_per_token(drafts, "fp16") == 2 * 576
    assert with_it.memory.kv_bytes - alone.memory.kv_bytes == 48 * 16 * 2 * 576
    assert with_it.speculation is not None
    assert with_it.speculation.draft_s > 0
    looked_up = plan(dataclasses.replace(options, drafted=1, looks_up=True))
    assert looked_up.speculation is not None
    assert looked_up.speculation.draft_s == 0
    assert looked_up.memory == alone.memory


def test_mimo_is_a_qwen2_that_drafts() -> None:
    config = {"model_type": "mimo", "hidden_size": 64, "intermediate_size": 160}
    config |= {"num_hidden_layers": 3, "num_attention_heads": 4, "vocab_size": 256}
    spec = read({**config, "max_position_embeddings": 512, "num_nextn_predict_layers": 1})
    assert (spec.qkv_bias, spec.draft_layers, spec.warnings) == (True, 1, ())
