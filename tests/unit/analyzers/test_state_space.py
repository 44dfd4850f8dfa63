"""Mamba layers by hand: what they hold, read, multiply and never grow by."""

from __future__ import annotations

import dataclasses

import pytest
from tiny_families import BLOCKS, FIRST, SECOND

from stallscope.analyzers.cost.arithmetic import num_parameters, parameter_counts
from stallscope.analyzers.cost.kv_bytes import kv_bytes, kv_bytes_per_token, state_bytes
from stallscope.analyzers.cost.operators import (
    Operator,
    StepShape,
    decode_shape,
    prefill_shape,
    step_operators,
)
from stallscope.analyzers.cost.roofline import CostModel, Machine
from stallscope.profiler.model_parts import StateSpace
from stallscope.profiler.spec import ModelSpec

CONV = 128 + 2 * 2 * 8  # channels that Mamba-2 convolves


def operators(spec: ModelSpec, shape: StepShape) -> dict[str, Operator]:
    return {o.name: o for o in step_operators(spec, shape, dtype="fp16", kv_dtype="fp16")}


def test_parameters_of_both_kinds() -> None:
    second = parameter_counts(SECOND)
    assert second["state_in"] == 2 * 64 * (128 + CONV + 4)  # gate, convolved, step sizes
    assert second["state_out"] == 2 * 128 * 64
    # Convolution and its bias; decay, skip and step bias a head; the norm.
    assert second["state_rest"] == 2 * (5 * CONV + 3 * 4 + 128)
    first = parameter_counts(FIRST)
    assert first["state_in"] == 2 * 64 * 256
    assert first["state_maps"] == 2 * 128 * (4 + 2 * 8)
    assert first["state_steps"] == 2 * 4 * 128
    assert first["other_biases"] == 2 * 128  # of the step sizes
    # Convolution and its bias, decay and skip; three norms.
    assert first["state_rest"] == 2 * (5 * 128 + 128 * 9 + 4 + 16)


def test_state_does_not_grow_and_attention_s_cache_does() -> None:
    token = 2 * 2 * 16 * 2  # K and V, two heads of 16, fp16, in the one layer that attends
    state = 2 * (128 * 8 + 3 * CONV) * 2
    assert kv_bytes_per_token(SECOND, "fp16") == token
    assert state_bytes(SECOND, "fp16") == state
    assert [kv_bytes(SECOND, n, "fp16") for n in (1, 1000)] == [token + state, 1000 * token + state]
    # At 16 bit or more, however small the cache's own dtype; split over ranks.
    assert state_bytes(SECOND, "int4") == state
    assert state_bytes(SECOND, "fp16", tensor_parallel=2) == state / 2
    kept = dataclasses.replace(SECOND.state_space or StateSpace(1, 1, 1, 1), state_bytes=4.0)
    wide = dataclasses.replace(SECOND, state_space=kept)
    assert state_bytes(wide, "fp16") == 2 * (128 * 8 * 4 + 3 * CONV * 2)


def test_a_step_reads_and_writes_each_request_s_state_once() -> None:
    short, long = (operators(SECOND, decode_shape(3, n)) for n in (10, 1000))
    found = short["mamba_state"]
    assert found == long["mamba_state"]
    assert found.kv_bytes == 2 * 3 * (128 * 8 + 3 * CONV) * 2
    assert found.flops == 5 * 128 * 8 * 3
    assert (found.instances, short["attention"].instances) == (2, 1)
    prompt = operators(SECOND, prefill_shape(50))["mamba_state"]
    assert (prompt.flops, prompt.kv_bytes) == (5 * 128 * 8 * 50, found.kv_bytes / 3)
    assert short["state_in"].flops == 2 * 3 * 64 * (128 + CONV + 4)


def test_ranks_sum_what_every_block_makes() -> None:
    """One attention, two states, three MLPs: six sums of a row of 64 in fp16, half of it twice."""
    machine = Machine(1e15, 1e15, "datasheet", ranks=2, link_bytes_per_s=1e6)
    time = CostModel(SECOND, "fp16", "fp16", machine).step_time(decode_shape(1, 10))
    assert time.communication == pytest.approx(6 * 2 * 0.5 * 64 * 2 / 1e6)


def test_a_block_may_be_an_mlp_alone_and_experts_narrower_than_the_model() -> None:
    """As in nemotron_h: three blocks, one of each kind."""
    counts = parameter_counts(BLOCKS)
    assert "gate_proj" not in counts
    assert "expert_gate_proj" not in counts
    assert counts["expert_up_proj"] == counts["expert_down_proj"] == 8 * 32 * 96
    assert counts["latent_down"] == counts["latent_up"] == 64 * 32
    assert counts["shared_up_proj"] == 64 * 48
    assert counts["norms"] == 4 * 64
    assert num_parameters(BLOCKS) == sum(counts.values())
