"""The document's memory and bandwidth rules, on captures recorded from a replayed GPU."""

from __future__ import annotations

import sqlite3

import pytest
from replay import Replay
from typer.testing import CliRunner

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis, RuleResult
from stallscope.app import application
from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture

STEP = """
    with recorder.decode(batch=1, context_tokens=100):
        time.sleep(0.02)
"""
REFUSED = STEP + '    recorder.event("oom", stage="kv", bytes=1 << 30)\n'
H100 = "cuda:0 NVIDIA H100 80GB HBM3"


def rule(capture: Capture | Diagnosis, name: str) -> RuleResult:
    diagnosis = diagnose(capture) if isinstance(capture, Capture) else capture
    return next(r for r in diagnosis.rules if r.id == name)


# 40 GiB are 42,949,672,960 bytes, and 0.95 of them 40,802,189,312.
@pytest.mark.parametrize(
    ("used", "body", "status"),
    [
        (40_802_189_312, REFUSED, "met"),
        (40_802_189_311, REFUSED, "not met"),
        (40_802_189_312, STEP, "not met"),
    ],
)
def test_the_capacity_rule_at_its_threshold(
    replay: Replay, used: int, body: str, status: str
) -> None:
    more = "".join(f"{t} gpu0 memory.used {used}\n" for t in (0, 1, 2))
    found = rule(replay.record("a100", body=body, more=more), "capacity")
    assert found.status == status
    memory = next(m for m in found.measures if m.name == "memory_used")
    assert memory.value == used / 42_949_672_960
    assert "cuda:0 NVIDIA A100-SXM4-40GB" in memory.source


def test_the_capacity_rule_without_its_counter(replay: Replay) -> None:
    capture = replay.record("a100", body=REFUSED, more="0 gpu0 memory.total error 3\n")
    found = rule(capture, "capacity")
    assert found.status == "not observable"
    assert found.reason == "no memory samples of the device (NVML returned Not Supported)"


@pytest.mark.parametrize(
    ("sm", "dram", "status"),
    [
        (25, 84, "met"),
        (29.9, 80.1, "met"),
        (30.1, 84, "not observable"),  # SMs active bound their throughput from above only
        (25, 79.9, "not met"),
    ],
)
def test_the_bandwidth_rule_at_its_thresholds(
    replay: Replay, sm: float, dram: float, status: str
) -> None:
    more = f"0 gpu0 gpm.2 {sm}\n0 gpu0 gpm.10 {dram}\n"
    found = rule(replay.record("h100", body=STEP, more=more), "bandwidth")
    assert found.status == status
    bound = next(m for m in found.measures if m.name == "sm_throughput" and m.side == "upper")
    assert bound.value == pytest.approx(sm / 100)
    assert bound.source == f"mean of gpm_sm_util samples of {H100}"
    measured = next(m for m in found.measures if m.name == "dram_throughput" and not m.side)
    assert measured.value == pytest.approx(dram / 100)
    assert measured.source == f"mean of gpm_dram_util samples of {H100}"
    if status == "met":
        assert found.reason.startswith(f"by bounds: SM ≤ {sm / 100:.3f}, below 0.30; DRAM")


def test_active_sms_with_idle_tensor_cores_settle_nothing(replay: Replay) -> None:
    # h100.txt: SMs active 0.97, tensor 0.05, DRAM 0.84
    diagnosis = diagnose(replay.record("h100", body=STEP))
    found = rule(diagnosis, "bandwidth")
    assert found.status == "not observable"
    sides = {m.side: m.value for m in found.measures if m.name == "sm_throughput"}
    # the busiest of tensor, FP32, FP16 and integer is FP16 with 0.12
    assert sides == {"lower": pytest.approx(0.12), "upper": pytest.approx(0.97)}
    gap = next(n for n in diagnosis.not_observable if n.what == "the bandwidth rule")
    assert "ncu (sm__throughput, dram__throughput)" in gap.how
    assert "nsys with GPU metrics" in gap.how


def test_without_gpm_the_bandwidth_rule_is_not_observable(replay: Replay) -> None:
    diagnosis = diagnose(replay.record("a100", body=STEP))
    found = rule(diagnosis, "bandwidth")
    assert found.status == "not observable"
    assert "NVML says this GPU has no GPM" in found.reason
    # one line for the nine metrics
    (line,) = (n for n in diagnosis.not_observable if "gpm_dram_util" in n.what)
    assert len(line.what.split(", ")) == 9


def test_the_report_names_the_device(replay: Replay) -> None:
    replay.record("h100", body=STEP, more="0 gpu0 gpm.2 25\n")
    shown = CliRunner().invoke(
        application(), ["diagnose", str(replay.folder / "run.sqlite"), "--format", "md"]
    )
    assert shown.exit_code == 0
    for counter in ("gpm_sm_util", "gpm_dram_util", "nvml_gpu_util"):
        assert f"mean of {counter} samples of {H100}" in shown.stdout
    assert f"highest sample of {H100}" in shown.stdout


CPU_RUN = """
from pathlib import Path
from stallscope.runner.run import RunOptions, run
run(RunOptions(model="tiny-26m", capture=Path(path), device="cpu", requests=2, warmup=1,
               input_tokens="8", output_tokens="4"))
"""


@pytest.mark.slow
def test_a_cpu_run_is_never_judged_by_a_gpu_that_it_does_not_use(replay: Replay) -> None:
    full = "0 gpu0 memory.used 85899345920\n0 gpu0 gpm.2 5\n0 gpu0 gpm.10 99\n"
    path = replay.folder / "run.sqlite"
    done = replay.run(f"path = {str(path)!r}\n{CPU_RUN}", "h100", more=full)
    assert (done.returncode, done.stderr) == (0, "")
    with sqlite3.connect(path) as db:
        devices = {device for (device,) in db.execute("SELECT DISTINCT device FROM device_samples")}
    assert devices == {"host"}
    diagnosis = diagnose(read_capture(path))
    assert "NVIDIA" not in repr(diagnosis)
    assert rule(diagnosis, "bandwidth").status != "met"
    memory = next(m for m in diagnosis.measures if m.name == "memory_used")
    assert memory.source == "1 − lowest available ÷ total"
