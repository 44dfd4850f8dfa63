"""A config.json becomes a spec, or one line that names the file and the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from stallscope.errors import InputError
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_config import model_from_config
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec, RopeScaling

BASE: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 3,
    "num_attention_heads": 8,
    "vocab_size": 500,
    "max_position_embeddings": 256,
}


def parse(**changes: Any) -> ModelSpec:
    return model_from_config(Fields("x.json", {**BASE, **changes}), "x")


def problem(**changes: Any) -> str:
    with pytest.raises(InputError) as caught:
        parse(**changes)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_silent_fields_take_the_defaults_of_the_format() -> None:
    assert parse() == ModelSpec(
        name="x",
        hidden_size=64,
        intermediate_size=160,
        num_layers=3,
        num_heads=8,
        num_kv_heads=8,
        head_dim=8,
        vocab_size=500,
        max_position=256,
        rms_norm_eps=1e-6,
    )


def test_given_head_dim_and_kv_heads_win() -> None:
    spec = parse(head_dim=32, num_key_value_heads=2)
    assert (spec.head_dim, spec.num_kv_heads) == (32, 2)


@pytest.mark.parametrize(
    "field",
    [
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "vocab_size",
        "max_position_embeddings",
    ],
)
def test_sizes_must_be_given_positive_and_whole(field: str) -> None:
    assert problem(**{field: None}) == f"x.json: {field} is missing; add it"
    for bad, shown in [(0, "0"), (-1, "-1"), (1.5, "1.5"), ("64", '"64"'), (True, "true")]:
        assert (
            problem(**{field: bad})
            == f"x.json: {field} must be a positive whole number, not {shown}"
        )


def test_heads_must_divide() -> None:
    assert "num_attention_heads 8 is not a multiple of num_key_value_heads 3" in problem(
        num_key_value_heads=3
    )
    assert "hidden_size 64 is not a multiple of num_attention_heads 7" in problem(
        num_attention_heads=7
    )
    assert parse(num_attention_heads=7, head_dim=16).head_dim == 16
    assert "head_dim 7 is odd" in problem(head_dim=7)


def test_numbers_past_reason_are_refused() -> None:
    assert "hidden_size must be" in problem(hidden_size=10**400)
    for bad in (float("nan"), float("inf"), 10**400, 0, -1.0):
        assert "rope_theta must be positive and finite" in problem(rope_theta=bad)
    assert "rms_norm_eps must be a number" in problem(rms_norm_eps="1e-5")
    assert 'tie_word_embeddings must be true or false, not "yes"' in problem(
        tie_word_embeddings="yes"
    )


def test_eos_may_be_a_number_or_a_list() -> None:
    assert parse(eos_token_id=2).eos_token_ids == (2,)
    assert parse(eos_token_id=[128001, 128008, 128009]).eos_token_ids == (128001, 128008, 128009)
    assert "eos_token_id must be a token id" in problem(eos_token_id="</s>")


@pytest.mark.parametrize(
    ("written", "ours"),
    [("float32", "fp32"), ("float16", "fp16"), ("bfloat16", "bf16"), ("torch.bfloat16", "bf16")],
)
def test_dtype_is_read_in_both_spellings(written: str, ours: str) -> None:
    assert parse(torch_dtype=written).dtype == ours
    assert parse(dtype=written).dtype == ours


def test_dtype_not_known_is_said() -> None:
    spec = parse(torch_dtype="auto")
    assert spec.dtype is None
    assert spec.warnings == ("torch_dtype auto is not known: say the dtype yourself",)


LLAMA3 = {
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
LLAMA3_SPEC = RopeScaling("llama3", 8.0, 1.0, 4.0, 8192)


@pytest.mark.parametrize("key", ["type", "rope_type"])
@pytest.mark.parametrize("place", ["rope_scaling", "rope_parameters"])
def test_rope_scaling_in_every_spelling(place: str, key: str) -> None:
    llama3 = parse(**{place: {key: "llama3", **LLAMA3}})
    assert (llama3.rope_scaling, llama3.warnings) == (LLAMA3_SPEC, ())
    linear = parse(**{place: {key: "linear", "factor": 2.0}})
    assert (linear.rope_scaling, linear.warnings) == (RopeScaling("linear", 2.0), ())
    assert parse(**{place: {key: "default"}}).rope_scaling is None


def test_rope_theta_from_old_and_new_place() -> None:
    assert parse(rope_theta=5e5).rope_theta == 5e5
    assert parse(rope_parameters={"rope_type": "default", "rope_theta": 5e5}).rope_theta == 5e5
    assert parse().rope_theta == 10_000.0


def test_incomplete_rope_scaling_names_the_field() -> None:
    assert problem(rope_scaling={"type": "llama3", "factor": 8.0}) == (
        "x.json: rope_scaling: low_freq_factor is missing; add it"
    )
    assert "rope_scaling must be an object" in problem(rope_scaling="llama3")


def test_rope_that_is_not_modelled_is_said() -> None:
    for kind in ("yarn", "dynamic", "longrope"):
        spec = parse(rope_scaling={"type": kind, "factor": 4.0})
        assert spec.rope_scaling is None
        assert spec.warnings == (
            f"rope scaling {kind} is not modelled: it changes positions only, not the costs",
        )


@pytest.mark.parametrize("family", ["Llama", "Qwen2", "Mistral", "Qwen3"])
def test_what_transformers_saves_today_is_read(family: str, tmp_path: Path) -> None:
    import transformers

    theirs = getattr(transformers, f"{family}Config")(
        hidden_size=64,
        intermediate_size=160,
        num_hidden_layers=3,
        num_attention_heads=8,
        num_key_value_heads=2,
        vocab_size=500,
        max_position_embeddings=256,
        rope_parameters={"rope_type": "llama3", "rope_theta": 5e5, **LLAMA3},
        dtype="bfloat16",
    )
    theirs.save_pretrained(tmp_path)
    assert load_model(str(tmp_path)) == ModelSpec(
        name=tmp_path.name,
        hidden_size=64,
        intermediate_size=160,
        num_layers=3,
        num_heads=8,
        num_kv_heads=2,
        head_dim=128 if family == "Qwen3" else 8,
        vocab_size=500,
        max_position=256,
        qkv_bias=family == "Qwen2",
        qk_norm=family == "Qwen3",
        rope_theta=5e5,
        rope_scaling=LLAMA3_SPEC,
        rms_norm_eps=1e-6,
        dtype="bf16",
        eos_token_ids=() if family.startswith("Qwen") else (2,),
    )


def test_head_size_of_qwen3_is_128_unless_it_says() -> None:
    # 64 / 8 heads would be 8.
    assert parse(model_type="qwen3").head_dim == 128
    assert parse(model_type="qwen3", head_dim=32).head_dim == 32
