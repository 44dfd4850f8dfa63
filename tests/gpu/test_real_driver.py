"""What only a real driver can answer; tests/doctor has the same on stand-ins."""

from __future__ import annotations

import json
import sqlite3
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.gpu
RUN = "run --model tiny-26m --device cuda --requests 2 --input-tokens 32 --output-tokens 4"


def stallscope(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "stallscope", *arguments]


def doctor() -> dict[str, dict[str, Any]]:
    command = stallscope("doctor", "--format", "json")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return {check["name"]: check for check in json.loads(done.stdout)["checks"]}


def test_doctor_sees_the_devices_that_torch_sees() -> None:
    import torch

    checks = doctor()
    assert checks["NVML"]["status"] == "ok"
    assert torch.cuda.get_device_name(0) in checks["NVML"]["reason"]
    assert f"sees {torch.cuda.device_count()} device" in checks["torch"]["reason"]


def test_doctor_finds_gpm_from_hopper_on() -> None:
    import torch

    is_hopper = torch.cuda.get_device_capability(0) >= (9, 0)
    assert doctor()["GPM"]["status"] == ("ok" if is_hopper else "missing")


def test_the_sampler_reads_the_driver_that_torch_uses(tmp_path: Path) -> None:
    """Two seconds with 1 GiB held and a busy device, against what torch and the table know."""
    import torch

    from stallscope.profiler.capture_file import read_capture
    from stallscope.profiler.recorder import Recorder

    held = torch.zeros(1 << 28, device="cuda:0")
    path = tmp_path / "run.sqlite"
    with Recorder(path, device="cuda:0"):
        end_s = time.perf_counter() + 2.0
        while time.perf_counter() < end_s:
            held.add_(1.0)
            torch.cuda.synchronize()
    rows = [s for s in read_capture(path).device_samples if s.device != "host"]
    values: dict[str, list[float]] = {}
    for row in rows:
        values.setdefault(row.name, []).append(row.value)
    total = torch.cuda.get_device_properties(0).total_memory
    assert min(values["memory_total_bytes"]) == pytest.approx(total, rel=0.05)
    assert held.nbytes < min(values["memory_used_bytes"]) < total
    assert max(values["nvml_gpu_util"]) > 0.5
    assert 10_000 < max(values["power_mw"]) < 2_000_000
    assert 15 <= len(values["memory_used_bytes"]) <= 21


@pytest.mark.slow
def test_nsys_traces_the_kernels_of_a_run(nsys: str, tmp_path: Path) -> None:
    trace = [nsys, "profile", "-t", "cuda,nvtx", "--sample=none", "--cpuctxsw=none", "-o", "X"]
    subprocess.run([*trace, *stallscope(*RUN.split())], cwd=tmp_path, check=True)
    export = [nsys, "export", "--type", "sqlite", "-o", "X.sqlite", "X.nsys-rep"]
    subprocess.run(export, cwd=tmp_path, check=True)
    with sqlite3.connect(tmp_path / "X.sqlite") as trace_file:
        kernels = "SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL"
        assert trace_file.execute(kernels).fetchone()[0] > 0
        ranges = "SELECT count(*) FROM NVTX_EVENTS WHERE eventType IN (59, 60)"
        assert trace_file.execute(ranges).fetchone()[0] > 0
