"""Each key of a TOML file moves its rule: an answer on one side of the line, then on the other."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

import pytest
from capture_builders import (
    MS,
    ON_GPU,
    batch_one,
    decodes,
    event,
    gauges,
    kernel,
    request,
    samples,
    step,
)
from played_run import play
from test_core_wait import on_cores

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.rules import by_id
from stallscope.analyzers.schedule import SchedulerConfig
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.whatif.simulate import Overhead
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import DeviceSpec, Subject
from stallscope.thresholds_file import read_thresholds

Answer = Callable[[Diagnosis], str]


@dataclass(frozen=True)
class Case:
    """A key and the value it is moved to, and what is answered before and after."""

    key: str
    moved: float
    capture: Capture
    answer: Answer
    before: str
    after: str


def rule(name: str) -> Answer:
    return lambda found: by_id(found.rules, name).status


def bottleneck(found: Diagnosis) -> str:
    return found.verdict.bottleneck


def load(found: Diagnosis) -> str:
    return found.verdict.load


def gain(found: Diagnosis) -> str:
    return "praised" if "raising the cap would buy +" in found.verdict.sentence else "not praised"


def on_gpu(**values: float) -> Capture:
    rows = [s for name, value in values.items() for s in samples(name, value)]
    return Capture(device_samples=tuple(rows))


MEMORY = dataclasses.replace(
    on_gpu(memory_used_bytes=0.9 * 2**30, memory_total_bytes=2.0**30), events=(event("oom"),)
)
QUEUED = decodes(60, waiting=1, running=3, blocked_by="seqs", device_ns=MS)
ONE_OF_SIX = decodes(60, waiting=1, running=5, blocked_by="seqs", device_ns=MS)
# 12 ms of prefill and 88 of decode, in the request's view and in the engine's.
MOSTLY_DECODE = Capture(
    requests=(request(0, 0, 0, 12, 100),),
    steps=(step(0, 0, 12, phase="prefill"), *(step(i, 4 + 8 * i, 8) for i in range(1, 12))),
)
# Nothing in flight for 92 of 100 ms; for 40 of 80; the same, with 4 of 40 ms spent waiting.
RARE = Capture(requests=(request(0, 0, 0, 1, 4), request(1, 96, 96, 97, 100)))
HALF = Capture(requests=(request(0, 0, 0, 5, 20), request(1, 60, 60, 65, 80)))
HALF_LATE = Capture(requests=(request(0, 0, 2, 5, 20), request(1, 60, 62, 65, 80)))
# The floor of the toy model is 0.57 ms: weights 0.46 and KV with what goes in and out.
READING = Capture(ON_GPU, steps=decodes(60, device_ns=MS, host_ns=0))
WITH_HOST = Capture(ON_GPU, steps=decodes(60, device_ns=700_000, host_ns=300_000))
TOO_FAST = Capture(ON_GPU, steps=decodes(60, 0.45, device_ns=450_000, host_ns=0))
# At half the memory clock a floor of 0.4 of the step explains 0.8 of it.
SLOW = Capture(
    ON_GPU,
    steps=decodes(60, 1.25, device_ns=1_250_000, host_ns=0),
    device_samples=(*samples("memory_clock_hz", 1e9), *samples("memory_clock_max_hz", 2e9)),
)
PLAYED = play(
    [(12, 20)] * 16,
    SchedulerConfig(max_num_seqs=4, max_num_batched_tokens=512, num_blocks=999, block_size=4),
    clients=8,
    truth=Overhead(per_step=0.002, per_request=0.0005, per_token=0.00002),
)
TINY_GPU = DeviceSpec("tiny gpu", {"fp16": 1e9}, None, 1e8)
AT_CAP = dataclasses.replace(PLAYED, subject=dataclasses.replace(PLAYED.subject, device=TINY_GPU))
CLIENTS = Capture(
    Subject(concurrency=8), engine_samples=gauges(waiting=(0.0,) * 5, running=(5.0,) * 5)
)
MIXED = Capture(kernels=(kernel("gemm", 55), kernel("other", 45)))

CASES = (
    Case("near_limit", 0.90, MEMORY, rule("capacity"), "not met", "met"),
    Case(
        *("sm_low", 0.40, on_gpu(nsys_sm_issue=0.35, gpm_dram_util=0.85)),
        *(rule("bandwidth"), "not met", "met"),
    ),
    Case(
        *("dram_high", 0.70, on_gpu(nsys_sm_issue=0.2, gpm_dram_util=0.75)),
        *(rule("bandwidth"), "not met", "met"),
    ),
    Case(
        *("queue_wait_share", 0.16, dataclasses.replace(batch_one(), steps=ONE_OF_SIX)),
        *(load, "served", "overloaded"),
    ),
    Case(
        *("utilisation_not_high", 0.80),
        Capture(ON_GPU, steps=QUEUED, device_samples=samples("nsys_sm_issue", 0.75)),
        *(rule("scheduling"), "not met", "met"),
    ),
    Case("decode_share", 0.85, MOSTLY_DECODE, rule("decode-focus"), "not met", "met"),
    Case("idle_share", 0.95, RARE, load, "idle", "underloaded"),
    Case("underloaded_share", 0.60, HALF, load, "underloaded", "served"),
    Case("nothing_waits", 0.15, HALF_LATE, load, "served", "underloaded"),
    Case("limit_share", 0.70, READING, bottleneck, "bandwidth", "undetermined"),
    Case("limit_margin", 2.5, WITH_HOST, bottleneck, "bandwidth", "undetermined"),
    Case("model_error", -0.5, TOO_FAST, bottleneck, "undetermined", "bandwidth"),
    Case("explained_share", 0.95, SLOW, bottleneck, "device", "bandwidth"),
    Case("clock_deficit", 0.60, SLOW, bottleneck, "device", "bandwidth"),
    Case("core_wait", 0.60, on_cores(0.5, 0.5, 1.0, 1.0), bottleneck, "device", "undetermined"),
    Case("small_gain", 0.90, AT_CAP, gain, "praised", "not praised"),
    Case("kernel_idle", 0.60, on_gpu(trace_kernel_busy=0.45), bottleneck, "host", "undetermined"),
    Case(
        *("dram_bound", 0.50, on_gpu(gpm_dram_util=0.55, gpm_tensor_util=0.1)),
        *(bottleneck, "undetermined", "bandwidth"),
    ),
    Case(
        *("tensor_low", 0.40, on_gpu(gpm_dram_util=0.7, gpm_tensor_util=0.35)),
        *(bottleneck, "undetermined", "bandwidth"),
    ),
    Case("tensor_bound", 0.50, on_gpu(gpm_tensor_util=0.55), bottleneck, "undetermined", "compute"),
    Case("kernel_class_share", 0.50, MIXED, bottleneck, "undetermined", "compute"),
    Case("client_share", 0.70, CLIENTS, bottleneck, "undetermined", "client"),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.key)
def test_a_key_moves_its_rule(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "my.toml"
    path.write_text(f"{case.key} = {case.moved}\n")
    assert case.answer(diagnose(case.capture)) == case.before
    found = diagnose(case.capture, thresholds=read_thresholds(path))
    assert case.answer(found) == case.after
    assert getattr(found.thresholds, case.key) == case.moved


def test_every_key_has_its_case() -> None:
    assert [case.key for case in CASES] == [field.name for field in fields(Thresholds)]
