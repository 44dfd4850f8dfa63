"""A decode step from a token's mean time, priced like any other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from trial_captures import MODEL, WEIGHT_BYTES, device, of_trials, trial

from stallscope.analyzers.benchmark.step import batch_size, prompts_in_a_step, step_s
from stallscope.analyzers.cost.calibration import NoCostModel
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis
from stallscope.profiler.spec import DeviceSpec, Subject
from stallscope.profiler.trial import Spread, Trial


def told(one: Trial, spec: DeviceSpec, **more: object) -> Diagnosis:
    subject = Subject(model=MODEL, device=spec, dtype="bf16", concurrency=one.concurrency)
    return diagnose(of_trials(one, subject=replace(subject, **more)))  # type: ignore[arg-type]


def test_weights_that_fill_the_step_are_bandwidth() -> None:
    # One client, 10 ms a token. At a bandwidth that reads the weights in 5 ms they take half.
    one = trial(rate=0.9, concurrency=1)
    found = told(one, device(bytes_per_s=WEIGHT_BYTES / 5e-3))
    assert found.verdict.bottleneck == "bandwidth"
    (phase,) = found.phases
    parts = {p.part: p for p in phase.budget}
    assert parts["weights"].share == pytest.approx(0.5, rel=0.01)
    assert parts["weights"].provenance == "estimated"
    # 1 request of 150 tokens' context: 2 · 2 layers · 8 heads · 128 · 2 bytes · 150 = 1.2 MB of KV
    kv_s = 2 * 2 * 8 * 128 * 2 * 150 / (WEIGHT_BYTES / 5e-3)
    assert parts["kv"].share == pytest.approx(kv_s / 10e-3, rel=0.02)
    assert (phase.phase, phase.mean_step_s) == ("decode", 0.01)
    assert phase.count == 9000  # 90 requests of 100 gaps, one at a time
    assert "one is taken to last a token's mean time at the mean batch (1" in " ".join(found.notes)


def test_weights_that_fill_little_leave_it_open() -> None:
    one = trial(rate=0.9, concurrency=1)
    found = told(one, device(bytes_per_s=WEIGHT_BYTES / 3.8e-3))  # 38 % and 0.5 % of KV
    assert found.verdict.bottleneck == "undetermined"
    assert found.verdict.between == ("bandwidth", "host")


def test_without_model_and_device_the_line_to_type_is_said() -> None:
    found = diagnose(of_trials(trial()))
    assert found.verdict.sentence.endswith("(add --gpu and --model to judge).")
    assert found.phases[0].budget == ()


def test_prompts_of_other_requests_may_be_in_the_step() -> None:
    # 9 in flight of 1.1 s: while one decodes, 8 others bring 100 tokens each, 100 · 8 · 10 / 1100.
    one = trial(rate=9 / 1.1, duration=1100.0)
    assert prompts_in_a_step(one, 0.01) == 7
    assert prompts_in_a_step(trial(rate=0.9), 0.01) == 0  # nobody beside it
    long = trial(rate=9 / 1.1, duration=1100.0, input_tokens=1000.0)
    assert prompts_in_a_step(long, 0.01) == 73
    # Decode of 8 reads 84 MB of weights and 8 · 1,050 tokens of 8,192 bytes, 69 MB: 6 ms of 10. The
    # linears of 8 + 73 tokens are 6.8 GFLOP, 6.5 ms at 1.05 TFLOP/s.
    spec = device(bytes_per_s=25.5e9, flops=1.05e12)
    found = told(long, spec)
    assert found.verdict.bottleneck == "undetermined"
    assert "prompt tokens a step may be beside it" in found.verdict.sentence
    assert "reading weights and KV takes 60 % of step time" in found.verdict.sentence
    assert found.verdict.between == ("bandwidth", "compute")
    # With arithmetic to spare the prompts change nothing.
    assert told(long, device(bytes_per_s=25.5e9)).verdict.bottleneck == "bandwidth"


def test_batch_is_what_decodes_at_once() -> None:
    assert batch_size(trial(rate=8.0)) == pytest.approx(8.0)  # 8 a second, 1 s each after TTFT
    assert batch_size(trial(rate=0.1)) == 1.0  # a step is of one request at least
    assert batch_size(trial(latency={"e2e_s": Spread(0.05)})) is None


def test_a_step_with_several_tokens() -> None:
    assert step_s(trial(tokens_per_step=2.5)) == pytest.approx(0.025)
    assert step_s(trial(tokens_per_step=0.5)) == pytest.approx(0.01)
    assert isinstance(step_s(trial(speculative=True)), NoCostModel)
    assert step_s(trial(latency={"itl_s": Spread(0.0119)})) == pytest.approx(0.01)
    many = step_s(trial(latency={"itl_s": Spread(0.0121)}))
    assert isinstance(many, NoCostModel)
    assert "several tokens" in many.reason


def test_what_tells_no_step() -> None:
    assert isinstance(step_s(trial(engines=2)), NoCostModel)
    none = step_s(Trial("a file", latency={"ttft_s": Spread(0.1)}))
    assert isinstance(none, NoCostModel)
    assert none.how == "stream the output"


@pytest.mark.parametrize(("stated", "used"), [(0.0084, 0.0084), (0.0083, 0.01), (0.0121, 0.01)])
def test_a_tools_own_figure_must_fit_its_ends(stated: float, used: float) -> None:
    """Within a factor of 1.2 of (E2E − TTFT) ÷ (tokens − 1) = 10 ms."""
    one = trial(latency={"tpot_s": Spread(stated)})
    assert step_s(one) == pytest.approx(used)
    said = any("does not fit its own E2E" in note for note in diagnose(of_trials(one)).notes)
    assert said is (used != stated)


def test_a_client_never_settles_decode_focus() -> None:
    found = diagnose(of_trials(trial()))
    (rule,) = (r for r in found.rules if r.id == "decode-focus")
    assert rule.status == "not observable"
    share = {m.name: m for m in found.measures}["decode_share_client"]
    assert share.value == pytest.approx(1.0 / 1.1)  # 1 s of 1.1 s
    assert (share.provenance, share.side) == ("bound", "lower")


def test_latency_and_throughput_are_the_clients() -> None:
    found = diagnose(
        of_trials(trial(ttft=Spread(0.1, 0.09, None, 0.2, 800), input_tokens_per_s=7.0))
    )
    spread = found.latency["ttft_s"]
    assert (spread.mean, spread.p50, spread.p90, spread.p99, spread.n) == (
        0.1,
        0.09,
        None,
        0.2,
        800,
    )
    assert found.throughput.output_tokens_per_s == pytest.approx(808.0)
    assert found.throughput.input_tokens_per_s == 7.0
    assert found.capture.duration_s == 100.0
    assert found.windows == ()
