"""What helps arithmetic on a processor: not fp8 and not more GPUs, which it has no use for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

import pytest
from played_run import COST, play, tokens_per_s

from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.step.budget import cost_steps, measured_steps
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.cpu_remedies import faster_dtype
from stallscope.analyzers.whatif.remedies import remedies_for
from stallscope.analyzers.whatif.simulate import Overhead
from stallscope.profiler.spec import DeviceSpec

POOL = SchedulerConfig(max_num_seqs=8, max_num_batched_tokens=512, num_blocks=99, block_size=4)
RUN = play([(12, 20)] * 8, POOL, clients=8, truth=Overhead(per_step=0.002))


def cpu(**peaks: float) -> DeviceSpec:
    return DeviceSpec("a processor", peaks, None, 2e10, is_cpu=True)


def flags(dtype: str, device: DeviceSpec) -> list[str]:
    """Return all that the remedies for compute say to set or to do."""
    cost = dataclasses.replace(COST, dtype=dtype)
    listed = remedies_for(
        "compute",
        replay=None,
        costs=cost_steps(measured_steps(RUN), cost),
        cost=cost,
        tokens_per_s=tokens_per_s(RUN),
        t=Thresholds(),
        device=device,
    )
    return [text for r in listed for text in (r.action, *r.flag.values())]


@pytest.mark.parametrize(("dtype", "other"), [("bf16", "fp32"), ("fp16", "fp32"), ("fp32", "bf16")])
def test_the_other_width_is_named_with_what_tells_whether_it_is_faster(
    dtype: str, other: str
) -> None:
    told = flags(dtype, cpu(**{dtype: 1e11}))
    assert f"--dtype {other}" in told
    assert any("lscpu" in text and "amx_bf16" in text for text in told)
    assert "VLLM_CPU_OMP_THREADS_BIND" in told
    for useless in ("fp8", "GPU", "tensor-parallel", "devices"):
        assert not any(useless in text for text in told), useless


@pytest.mark.parametrize(
    ("peaks", "is_named"),
    [
        ({"bf16": 1e11}, True),  # nothing is known of fp32
        ({"bf16": 1e11, "fp32": 1.1e11}, True),
        ({"bf16": 1e11, "fp32": 1e11}, False),
        ({"bf16": 4e11, "fp32": 1e11}, False),
    ],
)
def test_a_width_that_is_known_to_be_no_faster_is_not_named(
    peaks: Mapping[str, float], is_named: bool
) -> None:
    assert bool(faster_dtype("bf16", peaks, "decode")) is is_named


def test_a_width_of_8_bits_has_no_other() -> None:
    assert faster_dtype("int8", {"int8": 1e11}, "decode") == []


def test_a_gpu_keeps_its_remedies() -> None:
    gpu = DeviceSpec("a GPU", {"bf16": 1e14}, None, 1e12)
    told = flags("bf16", gpu)
    assert "--quantization fp8" in told
    assert not any("lscpu" in text for text in told)
