"""What engines and checkpoints call weight formats."""

from __future__ import annotations

from typing import Any

import pytest

from stallscope.analyzers.cost.arithmetic import weight_bytes
from stallscope.profiler.checked_json import Fields
from stallscope.profiler.hf_quantization import stored
from stallscope.profiler.model_parts import Quantization
from stallscope.profiler.models import load_model
from stallscope.profiler.weight_format import is_quantized, weight_dtype


@pytest.mark.parametrize(
    ("method", "model", "dtype"),
    [
        ("awq_marlin", None, "int4"),
        ("fp8", "x/y-int4", "fp8"),
        ("modelopt", None, "fp8"),
        ("modelopt_fp4", "nvidia/Llama-3.3-70B-Instruct-FP4", "nvfp4"),
        ("mxfp4", "openai/gpt-oss-20b", "mxfp4"),
        ("gptq", "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int8", "int8"),
        ("gptq", "Qwen/Qwen2.5-7B-Instruct-GPTQ-Int4", "int4"),
        ("gptq_marlin", "TheBloke/Llama-2-7B-GPTQ", None),
        ("compressed-tensors", "RedHatAI/Llama-3.1-8B-quantized.w8a8", "int8"),
        ("compressed-tensors", "RedHatAI/Llama-3.1-8B-FP8-dynamic", "fp8"),
        ("compressed-tensors", "my-model", None),
        ("compressed-tensors", None, None),
        ("bitsandbytes", "x-int4", None),
        ("something-new", None, None),
    ],
)
def test_methods(method: str, model: str | None, dtype: str | None) -> None:
    assert weight_dtype(method, model) == dtype


def test_what_is_no_method() -> None:
    assert [is_quantized(m) for m in (None, "None", "False", "auto", "fp8")] == [False] * 4 + [True]


def test_nvfp4_weights_take_what_vllm_loaded() -> None:
    # nvidia/Llama-3.3-70B-Instruct-FP4 on one B200: "Model loading took 39.89 GiB memory".
    # 80 layers · (2 · 8192² + 2 · 8192 · 1024 + 3 · 8192 · 28672) weights in 0.5625 bytes each,
    # embedding and head of 128,256 · 8192 in 2 bytes each.
    blocks = 80 * (2 * 8192**2 + 2 * 8192 * 1024 + 3 * 8192 * 28672)
    by_hand = blocks * 0.5625 + 2 * 128_256 * 8192 * 2
    held = weight_bytes(load_model("llama-3-70b"), "nvfp4")
    assert held == pytest.approx(by_hand, rel=1e-4)  # norms and scales of tensors come on top
    assert held == pytest.approx(39.89 * 2**30, rel=0.01)


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        ({"quant_method": "modelopt", "quant_algo": "NVFP4"}, "nvfp4"),
        ({"quant_method": "modelopt", "quant_algo": "FP8"}, "fp8"),
        ({"quant_method": "modelopt", "quant_algo": "W4A8_AWQ"}, None),
        ({"quant_method": "fbgemm_fp8"}, "fp8"),
        ({"quant_method": "bitsandbytes", "load_in_4bit": True}, None),
    ],
)
def test_what_config_json_says(given: dict[str, Any], dtype: str | None) -> None:
    found = stored(Fields("config.json", {"quantization_config": given}))
    assert (None if found is None else found[1]) == dtype


@pytest.mark.parametrize(("group", "dtype"), [(16, "nvfp4"), (32, "mxfp4"), (64, None)])
def test_four_bit_floats_are_told_by_their_group(group: int, dtype: str | None) -> None:
    weights = {"num_bits": 4, "type": "float", "group_size": group}
    groups = {"group_0": {"weights": weights}}
    given = {"quant_method": "compressed-tensors", "config_groups": groups}
    found = stored(Fields("config.json", {"quantization_config": given}))
    assert (None if found is None else found[1]) == dtype


def compressed(*groups: dict[str, Any]) -> tuple[Quantization, str] | None:
    named = {f"group_{n}": group for n, group in enumerate(groups)}
    given = {"quant_method": "compressed-tensors", "config_groups": named}
    return stored(Fields("config.json", {"quantization_config": given}))


INT4 = {"num_bits": 4, "type": "int", "group_size": 32}
FP8 = {"num_bits": 8, "type": "float"}


def test_groups_of_several_formats_are_not_read_as_the_first() -> None:
    """As where experts are W4A16 and the rest FP8; a group without weights is of the cache."""
    assert compressed({"weights": FP8}, {"weights": INT4}) is None
    assert compressed({"weights": FP8}, {"weights": {"num_bits": 2, "type": "int"}}) is None
    both = compressed({"weights": None}, {"weights": FP8}, {"weights": FP8})
    assert both is not None
    assert both[1] == "fp8"


@pytest.mark.parametrize(
    ("group", "activations"),
    [
        ({"weights": FP8}, None),
        ({"weights": FP8, "input_activations": None}, False),
        ({"weights": FP8, "input_activations": FP8}, True),
    ],
)
def test_whether_activations_are_quantised(group: dict[str, Any], activations: bool | None) -> None:
    found = compressed(group)
    assert found is not None
    assert found[0].activations is activations


@pytest.mark.parametrize(("symmetric", "zeros"), [(None, False), (True, False), (False, True)])
def test_a_symmetric_format_has_no_zero_points(symmetric: bool | None, zeros: bool) -> None:
    found = compressed({"weights": {**INT4, "symmetric": symmetric}})
    assert found is not None
    assert found[0].zeros is zeros
