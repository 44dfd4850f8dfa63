"""The machine of a run: its probes, else the datasheet; what is missing is named."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from step_rows import TINY

from stallscope.analyzers.cost.calibration import NoCostModel, build_cost_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.devices import load_device
from stallscope.profiler.model_parts import Quantization
from stallscope.profiler.spec import Subject

A100 = load_device("a100-sxm4-40gb")
WHOLE = Subject(model=TINY, device=A100, dtype="fp16")


def built(subject: Subject, *probes: dict[str, Any]) -> CostModel:
    events = tuple(Event(0, "probe", None, data) for data in probes)
    cost = build_cost_model(Capture(subject=subject, events=events))
    assert isinstance(cost, CostModel)
    return cost


def test_a_datasheet_machine() -> None:
    cost = built(dataclasses.replace(WHOLE, num_devices=2))
    assert (cost.machine.peak_flops, cost.machine.bytes_per_s) == (312e12, 1.555e12)
    assert (cost.machine.kind, cost.machine.ranks) == ("datasheet", 2)
    assert cost.machine.link_bytes_per_s == 300e9
    assert cost.machine.linear_times == {}


@pytest.mark.parametrize(
    ("missing", "how"),
    [("model", "--model"), ("device", "--gpu NAME"), ("dtype", "--dtype")],
)
def test_what_is_missing_is_named(missing: str, how: str) -> None:
    answer = build_cost_model(Capture(subject=dataclasses.replace(WHOLE, **{missing: None})))
    assert isinstance(answer, NoCostModel)
    assert missing in answer.reason
    assert how in answer.how


def test_a_dtype_without_a_peak_is_named() -> None:
    subject = dataclasses.replace(WHOLE, device=load_device("t4"), dtype="bf16")
    answer = build_cost_model(Capture(subject=subject))
    assert answer == NoCostModel(
        "t4 has no known peak for bf16", "give it as peak_flops.bf16 in the file of --gpu-file"
    )


@pytest.mark.parametrize(
    ("device", "dtype", "peak", "kv_dtype"),
    [
        ("a100-sxm4-40gb", "fp32", 19.5e12, "fp32"),
        ("a100-sxm4-40gb", "bf16", 312e12, "bf16"),
        # Weight-only: multiplied in 16 bits whatever the integer peak, with a 16-bit KV cache.
        ("a100-sxm4-40gb", "int8", 312e12, "fp16"),
        ("a100-sxm4-40gb", "int4", 312e12, "fp16"),
        ("a100-sxm4-40gb", "fp8", 312e12, "fp16"),  # no fp8 units on this chip
        ("h100-sxm", "fp8", 1979e12, "fp16"),
    ],
)
def test_peak_and_kv_dtype_by_weights(device: str, dtype: str, peak: float, kv_dtype: str) -> None:
    cost = built(dataclasses.replace(WHOLE, device=load_device(device), dtype=dtype))
    assert (cost.machine.peak_flops, cost.kv_dtype) == (peak, kv_dtype)


@pytest.mark.parametrize(
    ("device", "dtype", "activations", "peak"),
    [
        ("a100-sxm4-40gb", "int8", True, 624e12),
        ("a100-sxm4-40gb", "int8", False, 312e12),
        ("v100-pcie-16gb", "int8", True, 112e12),  # no int8 units on this chip
        ("h100-sxm", "fp8", False, 989.5e12),
        ("b200", "nvfp4", True, 9000e12),
        ("b200", "nvfp4", False, 2250e12),
    ],
)
def test_a_checkpoint_says_whether_activations_are_quantised_too(
    device: str, dtype: str, activations: bool, peak: float
) -> None:
    stored = Quantization("compressed-tensors", activations=activations)
    spec = dataclasses.replace(TINY, dtype=dtype, quantization=stored)
    subject = dataclasses.replace(WHOLE, model=spec, device=load_device(device), dtype=dtype)
    assert built(subject).machine.peak_flops == peak
    # In another format than its own nothing is told.
    other = dataclasses.replace(subject, dtype="bf16" if device != "v100-pcie-16gb" else "fp16")
    assert built(other).machine.peak_flops == load_device(device).peak_flops["fp16"]


def test_a_given_kv_dtype_holds() -> None:
    assert built(dataclasses.replace(WHOLE, kv_dtype="fp8")).kv_dtype == "fp8"


def test_linear_probes_by_group_and_rows_best_of_repeats() -> None:
    rows = [("qkv", 4, 0.3), ("qkv", 1, 0.2), ("down", 1, 0.5), ("qkv", 1, 0.1), ("qkv", 1, 0.4)]
    probes = [{"probe": "linear", "op": op, "rows": n, "time_s": s} for op, n, s in rows]
    cost = built(WHOLE, *probes)
    assert cost.machine.linear_times == {"qkv": ((1, 0.1), (4, 0.3)), "down": ((1, 0.5),)}


def test_only_a_working_set_probe_replaces_the_bandwidth() -> None:
    before = {"probe": "stream", "when": "before", "value": 9e12}
    inside = {"probe": "stream", "when": "working-set", "value": 4e12}
    slower = {"probe": "stream", "when": "working-set", "value": 3e12}
    assert built(WHOLE, before).machine.bytes_per_s == 1.555e12
    assert built(WHOLE, before, slower, inside).machine.bytes_per_s == 4e12
