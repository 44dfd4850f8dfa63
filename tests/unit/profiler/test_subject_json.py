"""Subjects survive JSON exactly, and what does not fit is named."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stallscope.profiler.spec import DeviceSpec, ModelSpec, RopeScaling, Subject
from stallscope.profiler.subject_json import subject_from_json, subject_to_json

MODEL = ModelSpec(
    name="m",
    hidden_size=8,
    intermediate_size=16,
    num_layers=2,
    num_heads=2,
    num_kv_heads=1,
    head_dim=4,
    vocab_size=32,
    max_position=64,
    rope_theta=500_000.0,
    rope_scaling=RopeScaling("llama3", 8.0, 1.0, 4.0, 8192),
    eos_token_ids=(1, 2),
    warnings=("a", "b"),
)
DEVICE = DeviceSpec(
    "a10",
    {"fp16": 1.25e14},
    24 * 2**30,
    6e11,
    link="pcie4",
    link_bytes_per_s=3.2e10,
    sources={"peak_flops": "datasheet"},
)


@pytest.mark.parametrize(
    "subject",
    [
        Subject(),
        Subject(model=MODEL),
        Subject(device=DEVICE, num_devices=2),
        Subject(MODEL, DEVICE, 1, "fp16", "int8", "vllm", "8 × (512 + 256)", 8, 2048, True),
    ],
)
def test_a_subject_comes_back_equal_through_json(subject: Subject) -> None:
    assert subject_from_json(json.loads(json.dumps(subject_to_json(subject)))) == subject


def test_unknown_keys_at_any_depth_are_ignored() -> None:
    data = subject_to_json(Subject(model=MODEL, device=DEVICE))
    data["colour"] = "red"
    data["model"]["experts"] = 8
    data["model"]["rope_scaling"]["mscale"] = 1.0
    assert subject_from_json(data) == Subject(model=MODEL, device=DEVICE)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"subject cannot be \[\]"),
        ({"num_devices": "two"}, "subject.num_devices cannot be 'two'"),
        ({"num_devices": True}, "subject.num_devices cannot be True"),
        ({"model": {"name": "m"}}, "subject.model lacks hidden_size"),
        ({"device": {"name": "d", "peak_flops": [1]}}, "subject.device.peak_flops cannot be"),
        ({"device": {"name": "d", "peak_flops": {"fp16": "x"}}}, "subject.device.peak_flops"),
    ],
)
def test_what_does_not_fit_is_named(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        subject_from_json(data)
