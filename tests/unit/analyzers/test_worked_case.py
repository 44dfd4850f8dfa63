"""The document's worked case, recorded on a clock that stands still and read back from its file.

LLaMA-7B in fp16 on an A100: 50 ms for a prompt of 512, then 256 tokens at 25 ms.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import BudgetPart, Diagnosis
from stallscope.analyzers.rules import by_id
from stallscope.profiler.capture import Capture, Request
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model
from stallscope.profiler.recorder import Recorder
from stallscope.profiler.spec import Subject
from stallscope.reports.json_report import render

MS = 1_000_000
START = 7_000


class Clock:
    """Moves only when it is told to."""

    def __init__(self) -> None:
        self.t_ns = START

    def __call__(self) -> int:
        return self.t_ns


def recorded(
    path: Path, device: str, *, with_request: bool, marks_forward: bool = False
) -> Capture:
    clock = Clock()
    subject = Subject(model=load_model("llama-7b"), device=load_device(device), dtype="fp16")
    with Recorder(path, subject=subject, clock=clock, sample_hz=0) as recorder:
        first_token_ns = START + 50 * MS
        for index in range(257):
            span = (
                recorder.prefill(512)
                if index == 0
                else recorder.decode(1, context_tokens=512 + index)
            )
            with span as step:
                length = 50 * MS if index == 0 else 25 * MS
                if marks_forward:
                    with step.forward():
                        clock.t_ns += length
                else:
                    clock.t_ns += length
        if with_request:
            recorder.request(
                Request(
                    id=0,
                    arrival_ns=START,
                    admitted_ns=START,
                    first_token_ns=first_token_ns,
                    end_ns=clock.t_ns,
                    input_tokens=512,
                    cached_tokens=None,
                    output_tokens=257,
                    preemptions=0,
                    preempted_ns=0,
                    status="finished",
                )
            )
    return read_capture(path)


@pytest.fixture(params=[True, False], ids=["request rows", "steps only"])
def found(request: pytest.FixtureRequest, tmp_path: Path) -> Diagnosis:
    path = tmp_path / "run.sqlite"
    return diagnose(recorded(path, "a100-sxm4-40gb", with_request=request.param))


def decode_parts(diagnosis: Diagnosis) -> dict[str, BudgetPart]:
    decode = next(p for p in diagnosis.phases if p.phase == "decode")
    assert (decode.count, decode.mean_step_s) == (256, pytest.approx(0.025))
    return {part.part: part for part in decode.budget}


def memory_points(diagnosis: Diagnosis) -> float:
    parts = decode_parts(diagnosis)
    return 100 * (parts["weights"].share + parts["kv"].share)


def floor_ms(bytes_per_s: float) -> float:
    """Weights without the input embedding, and KV at the mean context of 640.5."""
    layer = 4 * 4096 * 4096 + 3 * 4096 * 11008
    weights = 2 * (32 * layer + 4096 * 32000)  # 13.2 GB
    kv = 2 * 32 * 32 * 128 * 2 * 640.5  # 0.34 GB
    return 1e3 * (weights + kv) / bytes_per_s


def test_decode_takes_nearly_all_the_time(found: Diagnosis) -> None:
    shares = {m.name: m.value for m in found.measures if m.name.startswith("decode_share")}
    assert shares["decode_share_requests"] == pytest.approx(6400 / 6450)  # 99.2 %
    assert shares["decode_share_engine"] == pytest.approx(6400 / 6450)
    assert by_id(found.rules, "decode-focus").status == "met"
    assert found.document.advice == "decode first"
    assert found.verdict.phase == "decode"


def test_memory_explains_a_third_of_the_step(found: Diagnosis) -> None:
    assert memory_points(found) == pytest.approx(34.9, abs=0.5)
    assert memory_points(found) == pytest.approx(100 * floor_ms(1.555e12) / 25, abs=0.1)
    parts = decode_parts(found)
    rest = parts["host"].share + parts["unexplained"].share
    assert 100 * rest == pytest.approx(65.1, abs=0.5)


def test_the_bandwidth_rule_is_not_met(found: Diagnosis) -> None:
    """0.349 · 1.25 = 0.436 of the peak, far below 0.80."""
    rule = by_id(found.rules, "bandwidth")
    assert rule.status == "not met"
    assert "0.436 ≤ 0.80 (estimated)" in rule.reason


def test_the_verdict_stays_open_and_says_what_to_trace(found: Diagnosis) -> None:
    verdict = found.verdict
    assert (verdict.bottleneck, verdict.between) == ("undetermined", ("bandwidth", "host"))
    assert verdict.sentence == (
        "Undetermined between bandwidth and host: reading weights and KV takes 35 % of step time, "
        "the largest known part; 65 % is unexplained. To tell what the rest is, trace a few steps "
        "with nsys (cuda, nvtx): launch gaps show as an idle device."
    )
    gaps = {n.what: n.how for n in found.not_observable}
    assert gaps["launch gaps inside the forward call"] == "trace a few steps with nsys (cuda, nvtx)"
    assert gaps["host time inside a step"] == "mark it: with step.forward(): …"


def test_the_prefill_is_compute(found: Diagnosis) -> None:
    assert found.verdict.limits.ttft == "compute"
    prefill = next(p for p in found.phases if p.phase == "prefill")
    shares = {part.part: part.share for part in prefill.budget}
    # 2 · 512 · 6.476e9 FLOP in the blocks' linears at 312 TFLOP/s are 21.3 of 50 ms; attention's
    # 32 · 4 · 4096 · 131,328 FLOP are 0.2 ms more.
    assert shares["compute"] == pytest.approx(0.429, abs=0.01)


def test_json_says_the_same(found: Diagnosis) -> None:
    report = json.loads(render(found))
    assert (report["schema"], report["tool"]) == (1, "stallscope")
    assert report["verdict"]["class"] == "undetermined"
    assert report["verdict"]["between"] == ["bandwidth", "host"]
    assert report["subject"]["model"] == "llama-7b"
    phases = {p["phase"]: p for p in report["phases"]}
    assert (phases["decode"]["count"], phases["prefill"]["count"]) == (256, 1)
    assert phases["decode"]["time_s"] == pytest.approx(6.4)
    assert report["document"]["advice"] == "decode first"


def test_on_the_larger_a100(tmp_path: Path) -> None:
    capture = recorded(tmp_path / "run.sqlite", "a100-sxm4-80gb", with_request=True)
    found = diagnose(capture)
    assert memory_points(found) == pytest.approx(26.6, abs=0.5)
    assert memory_points(found) == pytest.approx(100 * floor_ms(2.039e12) / 25, abs=0.1)
    assert found.verdict.bottleneck == "undetermined"


def test_latency_of_the_request(tmp_path: Path) -> None:
    capture = recorded(tmp_path / "run.sqlite", "a100-sxm4-40gb", with_request=True)
    latency = diagnose(capture).latency
    assert latency["ttft_s"].mean == pytest.approx(0.050)
    assert latency["tpot_s"].mean == pytest.approx(0.025)
    assert latency["e2e_s"].mean == pytest.approx(6.45)


def test_marking_the_forward_call_rules_the_host_out_of_the_rest(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    capture = recorded(path, "a100-sxm4-40gb", with_request=False, marks_forward=True)
    found = diagnose(capture)
    assert decode_parts(found)["host"].time_s == 0
    assert "host time inside a step" not in {n.what for n in found.not_observable}
