"""The same changes to captures that the runner recorded on this machine."""

from __future__ import annotations

import subprocess
import sys

import pytest
from changes import slowed, with_idle_gpu, without_fields
from test_less_evidence import BLIND
from test_one_way import reading_share, with_bandwidth

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture

pytestmark = pytest.mark.slow

LOADS = {
    "scheduling": ("--max-num-seqs", "1", "--kv-budget", "64MiB"),
    "capacity": ("--kv-budget", "2MiB"),
}


@pytest.fixture(scope="module", params=LOADS)
def recorded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Capture]:
    """Run eight requests of four clients into one limit, and read what was recorded."""
    path = tmp_path_factory.mktemp("run") / "run.sqlite"
    command = [sys.executable, "-m", "stallscope", "run", "--model", "tiny-26m", "--device", "cpu"]
    command += ["--requests", "8", "--concurrency", "4", "--capture", str(path)]
    command += ["--input-tokens", "64", "--output-tokens", "32", *LOADS[request.param]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return request.param, read_capture(path)


def test_a_real_run_keeps_its_class(recorded: tuple[str, Capture]) -> None:
    bottleneck, capture = recorded
    before = diagnose(capture)
    assert before.verdict.bottleneck == bottleneck
    assert diagnose(with_idle_gpu(capture)).verdict.bottleneck == bottleneck
    after = diagnose(slowed(capture, 2.0))
    assert after.verdict.bottleneck == bottleneck
    for one, other in zip(before.phases, after.phases, strict=True):
        shares = {p.part: p.share for p in one.budget}
        assert {p.part: p.share for p in other.budget} == pytest.approx(shares, abs=1e-3)


def test_a_real_run_with_less_evidence(recorded: tuple[str, Capture]) -> None:
    bottleneck, capture = recorded
    before = diagnose(capture).verdict
    for field in ("blocked_by", "kv_used_bytes", "waiting", "running", "host_ns", "device_ns"):
        after = diagnose(without_fields(capture, field)).verdict
        if after.bottleneck == bottleneck:
            assert after.confidence <= before.confidence, field
    for name, blind in BLIND.items():
        assert diagnose(blind(capture)).verdict.bottleneck != name


def test_a_real_run_on_a_faster_memory(recorded: tuple[str, Capture]) -> None:
    bottleneck, capture = recorded
    faster = with_bandwidth(capture, 4.0)
    assert reading_share(faster) <= reading_share(capture) + 1e-9
    assert diagnose(faster).verdict.bottleneck == bottleneck
