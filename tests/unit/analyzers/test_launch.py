"""Kernels of a step counted by hand, and what launching them costs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tiny_families import FAMILIES

from stallscope.analyzers.cost.expected import ExpectedModel, expected_model
from stallscope.analyzers.cost.operators import decode_shape
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.analyzers.plan.launching import launches
from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.planner import plan
from stallscope.analyzers.whatif.simulate import Overhead
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import ModelSpec

LLAMA = load_model("llama-3-8b")
MACHINE = Machine(1e15, 1e12, "datasheet")


def model(spec: ModelSpec, machine: Machine = MACHINE) -> ExpectedModel:
    found = expected_model(CostModel(spec, "bf16", "bf16", machine))
    assert found is not None
    return found


def test_kernels_by_hand() -> None:
    # qkv, o, gate and up, down, attention and five small ones in 32 layers, and the head.
    step = decode_shape(1, 100)
    assert model(LLAMA).kernels(step) == 32 * 10 + 1
    # Over two devices a sum after each attention and each MLP.
    assert model(LLAMA, replace(MACHINE, ranks=2)).kernels(step) == 32 * 12 + 1
    # Three blocks, one of each kind: qkv, attention, o; in, state, out; router, latent down,
    # experts up and down, latent up, shared up and down; five small ones for two, of which half
    # a layer's are rounded, and four more for the experts; the head.
    assert model(FAMILIES["blocks of one kind"]).kernels(step) == 3 + 3 + 7 + 8 + 4 + 1


def test_the_host_works_beside_the_device() -> None:
    fast = model(LLAMA, Machine(1e18, 1e15, "datasheet"))
    step, overhead = decode_shape(2, 100), Overhead(1e-3, 5e-6)
    device_s = fast.step_time(step).floor
    found = launches(fast, step, overhead)
    assert found.step_s == pytest.approx(device_s + 1.01e-3)
    assert found.eager_s == pytest.approx((321 * 25e-6, 321 * 100e-6))
    assert found.graph_s == pytest.approx((321 * 0.9e-6, 321 * 1.3e-6))
    assert device_s < 321 * 25e-6
    assert found.eager_step_s == pytest.approx((321 * 25e-6 + 1.01e-3, 321 * 100e-6 + 1.01e-3))
    # A device that takes longer than any launching: it is the same step either way.
    slow = model(LLAMA, Machine(1e15, 1e11, "datasheet"))
    found = launches(slow, step, overhead)
    assert found.eager_step_s == (found.step_s, found.step_s)


def test_a_plan_tells_it_of_a_gpu_of_the_table_only() -> None:
    options = PlanOptions(LLAMA, load_device("h100-sxm"), dtype="bf16", output_tokens=16)
    found = plan(options).launches
    assert found is not None
    assert found.kernels == 321
    assert plan(replace(options, device=None)).launches is None
    measured = replace(load_device("h100-sxm"), kind="achievable")
    assert plan(replace(options, device=measured)).launches is None


def test_published_steps_in_eager_mode_lie_within() -> None:
    """An A800 computes and reads as an A100; a bare loop of PyTorch has no engine around it."""
    qwen, llama = (
        plan(PlanOptions(load_model(name), load_device(device), dtype="bf16")).launches
        for name, device in (("qwen2.5-7b", "a100-sxm4-80gb"), ("llama-3-8b", "h100-sxm"))
    )
    assert qwen is not None
    assert llama is not None
    assert qwen.eager_step_s[0] <= 22.5e-3 <= qwen.eager_step_s[1]
    assert llama.eager_s[0] <= 8.4e-3 <= llama.eager_s[1]
