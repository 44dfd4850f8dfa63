"""Captures to be changed: built by hand, played on the scheduler, and real ones of the corpus."""

from __future__ import annotations

import dataclasses
import os
from functools import cache
from pathlib import Path
from typing import Any

from capture_builders import (
    MS,
    ON_GPU,
    TOY_GPU,
    batch_one,
    decodes,
    gauges,
    kernel,
    request,
    samples,
)
from played_run import play

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.stated.settle import settle
from stallscope.analyzers.stated.weights import with_own_dtype
from stallscope.analyzers.whatif.simulate import Overhead
from stallscope.profiler.capture import Capture
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model
from stallscope.profiler.reading import read_inputs
from stallscope.profiler.spec import DeviceSpec, Subject

ROOT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("STALLSCOPE_CORPUS", ROOT.parent / "shared" / "corpus"))
TRUTH = Overhead(per_step=0.002, per_request=0.0005, per_token=0.00002)
TINY_GPU = DeviceSpec("tiny gpu", {"fp16": 1e9}, None, 1e8)


def played(cap: int, blocks: int = 999) -> Capture:
    """Sixteen requests of eight clients, on a device that the cost model knows."""
    config = SchedulerConfig(
        max_num_seqs=cap, max_num_batched_tokens=512, num_blocks=blocks, block_size=4
    )
    found = play([(12, 20)] * 16, config, clients=8, truth=TRUTH)
    return dataclasses.replace(found, subject=dataclasses.replace(found.subject, device=TINY_GPU))


def _on(device: DeviceSpec, *, length_ms: float = 1.0, host_ms: float = 0.0) -> Capture:
    inside = round((length_ms - host_ms) * MS)
    steps = decodes(60, length_ms, device_ns=inside, host_ns=round(host_ms * MS))
    return Capture(dataclasses.replace(ON_GPU, device=device), steps=steps)


# 65,536 FLOP of linears a step at 100 MFLOP/s take 0.66 ms, far above 0.06 of what is read.
SLOW_CORES = dataclasses.replace(TOY_GPU, peak_flops={"fp32": 1e8}, memory_bytes_per_s=3e9)
CLOCKS = (*samples("memory_clock_hz", *[1e9] * 9), *samples("memory_clock_max_hz", *[2e9] * 9))

BUILT: dict[str, tuple[str, Capture]] = {
    "reading on a CPU": ("bandwidth", batch_one()),
    "reading on a GPU": ("bandwidth", _on(TOY_GPU)),
    "slow cores": ("compute", _on(SLOW_CORES)),
    "slow host": ("host", _on(TOY_GPU, length_ms=3.0, host_ms=2.0)),
    "slow clocks": (
        "device",
        dataclasses.replace(_on(TOY_GPU, length_ms=1.25), device_samples=CLOCKS),
    ),
    "sequence cap": ("scheduling", played(2)),
    "small pool": ("capacity", played(8, blocks=20)),
    "DRAM at work": (
        "bandwidth",
        Capture(
            device_samples=(
                *samples("gpm_dram_util", 0.8, 0.7, 0.9, 0.8),
                *samples("gpm_tensor_util", 0.1, 0.2, 0.1, 0.1),
                *samples("nvml_gpu_util", 1.0, 0.9, 1.0, 1.0),
            )
        ),
    ),
    "tensor cores at work": (
        "compute",
        Capture(
            device_samples=(
                *samples("gpm_tensor_util", 0.7, 0.8, 0.65, 0.7),
                *samples("nvml_gpu_util", 1.0, 0.9, 1.0, 1.0),
            )
        ),
    ),
    "tensor cores alone": ("compute", Capture(device_samples=samples("gpm_tensor_util", 0.7))),
    "idle between kernels": (
        "host",
        Capture(kernels=(kernel("gemm", 40),), device_samples=samples("trace_kernel_busy", 0.4)),
    ),
    "copies nobody hides": (
        "interconnect",
        Capture(
            kernels=(kernel("gemm", 35), kernel("copy", 5, exposed_ms=50)),
            device_samples=samples("trace_kernel_busy", 0.4),
        ),
    ),
    "half idle": ("none", Capture(requests=(request(0, 0, 0, 5, 15), request(1, 65, 65, 70, 80)))),
    "few of eight clients": (
        "client",
        Capture(
            Subject(concurrency=8),
            engine_samples=gauges(waiting=(0.0,) * 8, running=(2.0, 3.0) * 4),
        ),
    ),
    "gauges at a cap": (
        "scheduling",
        Capture(
            Subject(max_num_seqs=4),
            engine_samples=gauges(
                waiting=(5.0,) * 8, running=(4.0,) * 8, kv_used_fraction=(0.3,) * 8
            ),
        ),
    ),
    "gauges of a full pool": (
        "capacity",
        Capture(
            engine_samples=gauges(
                waiting=(5.0, 6.0) * 4, running=(4.0,) * 8, kv_used_fraction=(0.99,) * 8
            )
        ),
    ),
}

# Real captures, each with what its owner knows of it.
REAL: dict[str, tuple[str, tuple[str, ...], dict[str, Any]]] = {
    "a cap": ("scheduling", ("prom_series/vllm032_cpu_seqcap.prom",), {}),
    "a full pool": ("capacity", ("prom_series/vllm032_cpu_kv.prom",), {}),
    "preemption": ("capacity", ("prom_series/vllm032_cpu_preempt.prom",), {}),
    "an idle server": ("none", ("prom_series/vllm032_cpu_idle.prom",), {}),
    "a log": ("capacity", ("logs/a100sweep/test7_03_n75_in1024_out1024.log",), {}),
    "a log with its model": (
        "bandwidth",
        ("logs/a100sweep/test5_01_n1_in1024_out1024.log",),
        {"device": "a100-sxm4-80gb", "model": "models/qwen2-7b.json", "dtype": "bf16"},
    ),
    "an eager trace": ("host", ("torch/tracelens__b200_eager.json.gz",), {}),
    "a trace of decode": ("bandwidth", ("torch/tracelens__sglang_Qwen3-8B_decode.json.gz",), {}),
    "a trace of copies": ("interconnect", ("nsys/nsysai__h100_2gpu_1s.sqlite",), {}),
    "a page of DCGM": ("compute", ("dcgm/dcgm_exporter__a100_mig_nvidia_docs.prom",), {}),
    "one page": ("scheduling", ("prom/vllm025__metrics_vllm_0_25_1_loaded.txt",), {}),
    "prompts at a flat rate": ("compute", ("logs/issues/vllm_v1_pr37307_prefill_bound.log",), {}),
    "a benchmark": (
        "bandwidth",
        ("bench/h200bench__1_vllm_c1.json",),
        {"device": "h200-sxm", "model": "models/llama-3-8b.json", "dtype": "bf16"},
    ),
    "a late sender": ("client", ("bench/inferenceperf__vllm_stage6_lifecycle.json",), {}),
    "an idle GPU": ("none", ("smi/telegraf__tesla-t4.xml",), {}),
}


@cache
def real(name: str) -> Capture:
    """Read real files as `diagnose` does, with their owner's facts."""
    _, files, told = REAL[name]
    facts = dict(told)
    if "device" in facts:
        facts["device"] = load_device(facts["device"])
    if "model" in facts:
        facts["model"] = load_model(str(CORPUS / facts["model"]))
    return with_facts(read_inputs([CORPUS / file for file in files]), facts)


def with_facts(capture: Capture, facts: dict[str, Any]) -> Capture:
    """Lay facts over a capture where it does not contradict them."""
    settled, _ = settle(capture, facts)
    subject, _ = with_own_dtype(settled)
    return dataclasses.replace(settled, subject=subject)


def known(name: str) -> Capture:
    """Return a capture by name."""
    return BUILT[name][1] if name in BUILT else real(name)


def class_of(capture: Capture) -> str:
    """Return the verdict's class."""
    return diagnose(capture).verdict.bottleneck


NAMES = (*BUILT, *(REAL if CORPUS.is_dir() else ()))
