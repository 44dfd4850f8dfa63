"""Weights in host memory: fetched over the link in every step, and no longer in the device's."""

from __future__ import annotations

import dataclasses

import pytest

from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.planner import plan
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model

GIB = 1 << 30
LLAMA = PlanOptions(load_model("llama-7b"), load_device("a10g"), dtype="fp16")


def test_a_step_fetches_what_is_offloaded() -> None:
    plain, moved = (
        plan(dataclasses.replace(LLAMA, cpu_offload_bytes=size)) for size in (0, 4 * GIB)
    )
    transfer = 4 * GIB / 32e9  # PCIe 4.0 x16: 134 ms
    for before, after in zip(plain.phases, moved.phases, strict=True):
        assert (after.time_s or 0) - (before.time_s or 0) == pytest.approx(transfer)
        parts = {part.part: part.time_s for part in after.budget}
        assert parts["transfer"] == pytest.approx(transfer)
    assert [phase.bound for phase in moved.phases] == ["interconnect", "interconnect"]
    assert plain.phases[1].bound == "bandwidth"
    assert plain.memory.weights_bytes - moved.memory.weights_bytes == 4 * GIB
    assert (moved.memory.max_concurrency or 0) > (plain.memory.max_concurrency or 0)


def test_the_predicted_run_names_the_link_that_its_phases_name() -> None:
    """4 GiB over 32 GB/s take 134 ms of a step that reads 13.2 GB of weights at 600 GB/s in 22."""
    moved = plan(dataclasses.replace(LLAMA, cpu_offload_bytes=4 * GIB, output_tokens=16))
    assert moved.limit is not None
    assert (moved.limit.bottleneck, moved.limit.between) == ("interconnect", ())
    # A tenth of a GiB takes 3.4 ms beside the 22 ms: the weights' reading stays the limit.
    little = plan(dataclasses.replace(LLAMA, cpu_offload_bytes=GIB // 10, output_tokens=16))
    assert little.limit is not None
    assert little.limit.bottleneck == "bandwidth"


def test_no_more_is_offloaded_than_there_is() -> None:
    assert plan(dataclasses.replace(LLAMA, cpu_offload_bytes=99 * GIB)).memory.weights_bytes == 0


def test_the_link_of_a_device_on_nvlink_is_its_own_figure() -> None:
    a100, a10g = load_device("a100-sxm4-80gb"), load_device("a10g")
    assert (a100.link, a100.to_host_bytes_per_s) == ("nvlink", 32e9)
    assert (a10g.host_link_bytes_per_s, a10g.to_host_bytes_per_s) == (None, 32e9)
    assert load_device("gb10").to_host_bytes_per_s is None
