"""What the user states against what a capture shows: the capture wins, and the report says so."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from capture_builders import ON_GPU, TOY_MODEL, decodes
from trial_captures import of_trials, trial

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.impossible import IMPOSSIBLE
from stallscope.analyzers.prepared import prepare
from stallscope.analyzers.stated.settle import settle
from stallscope.analyzers.stated.weights import with_own_dtype
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, EngineSample, Event
from stallscope.profiler.devices import load_device
from stallscope.profiler.model_parts import Quantization
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import Subject

S = 1_000_000_000


def sampled(running: float, waiting: float = 0.0, **facts: Any) -> Capture:
    """Two looks at one engine."""
    rows = tuple(
        EngineSample(t * S, "0", name, value)
        for t in (0, 1)
        for name, value in (("running", running), ("waiting", waiting))
    )
    return Capture(engine_samples=rows, **facts)


def logged(subject: Subject | None = None, **facts: Any) -> Capture:
    """A log that states facts and nothing else."""
    return Capture(subject=subject or Subject(), meta={"server_log": facts})


@pytest.mark.parametrize(("cap", "is_used"), [(63, False), (64, True), (65, True)])
def test_a_cap_below_what_ran_is_not_believed(cap: int, is_used: bool) -> None:
    settled, warnings = settle(sampled(64), {"max_num_seqs": cap})
    assert settled.subject.max_num_seqs == (cap if is_used else None)
    assert warnings == (
        ()
        if is_used
        else ("--max-num-seqs was not used: 63 was given, and 64 requests ran at once.",)
    )


def test_a_cap_is_of_each_engine() -> None:
    rows = [EngineSample(0, engine, "running", 40.0) for engine in ("0", "1")]
    settled, warnings = settle(Capture(engine_samples=tuple(rows)), {"max_num_seqs": 40})
    assert (settled.subject.max_num_seqs, warnings) == (40, ())


def test_steps_tell_what_ran_too() -> None:
    steps = decodes(3, decode_requests=8, running=9)
    assert settle(Capture(steps=steps), {"max_num_seqs": 8})[0].subject.max_num_seqs is None
    assert settle(Capture(steps=steps), {"max_num_seqs": 9})[0].subject.max_num_seqs == 9


# 8 a second, each 100 · 10 ms in decode: 8 on average. A tenth and one more than 6 are 7.6.
@pytest.mark.parametrize(("cap", "is_used"), [(1, False), (6, False), (7, True), (64, True)])
def test_a_cap_below_what_a_client_had_in_decode(cap: int, is_used: bool) -> None:
    seen = of_trials(trial(ttft=0.1, tpot=0.01, tokens=101, rate=8.0))
    settled, warnings = settle(seen, {"max_num_seqs": cap})
    assert settled.subject.max_num_seqs == (cap if is_used else None)
    refused = (
        f"--max-num-seqs was not used: {cap} was given, and 8.0 requests were in decode on average."
    )
    assert warnings == (() if is_used else (refused,))
    # An engine's own gauges know better: to its client, a preempted request is in decode.
    beside = dataclasses.replace(seen, engine_samples=sampled(1).engine_samples)
    assert settle(beside, {"max_num_seqs": cap})[0].subject.max_num_seqs == cap


# 40 + 16 are in flight. A tenth and one more than 50 are 56.0, than 49 they are 54.9.
@pytest.mark.parametrize(("clients", "is_used"), [(49, False), (50, True), (200, True)])
def test_fewer_clients_than_requests_in_flight(clients: int, is_used: bool) -> None:
    settled, warnings = settle(sampled(40, 16), {"concurrency": clients})
    assert settled.subject.concurrency == (clients if is_used else None)
    assert [w.split(":")[0] for w in warnings] == (
        [] if is_used else ["--concurrency was not used"]
    )


def test_a_cap_that_was_only_seen_gives_way_and_says_no_more() -> None:
    seen = Event(
        0, "check", None, {"sentence": "The page states no cap.", "infers": "max_num_seqs"}
    )
    missing = {"what": "the cap on running requests", "reason": "no", "how": "say it"}
    capture = sampled(
        48,
        subject=Subject(max_num_seqs=48),
        events=(seen, Event(0, "not_observable", None, missing)),
    )
    settled, warnings = settle(capture, {"max_num_seqs": 64})
    assert (settled.subject.max_num_seqs, settled.events, warnings) == (64, (), ())
    kept, warnings = settle(capture, {"max_num_seqs": 32})
    assert (kept.subject.max_num_seqs, kept.events) == (48, capture.events)
    assert warnings == ("--max-num-seqs was not used: 32 was given, and 48 requests ran at once.",)


def inferred(**facts: Any) -> Event:
    data = {"sentence": "The page states no cap.", "infers": "max_num_seqs", **facts}
    return Event(0, "check", None, data)


# 48 are 0.95 of 50.5: of a cap up to 50 a moment between two steps may show no more.
@pytest.mark.parametrize(("cap", "is_used"), [(48, True), (50, True), (51, False), (4096, False)])
def test_a_cap_beyond_one_that_is_proven_is_not_believed(cap: int, is_used: bool) -> None:
    event = inferred(seen="running stood at 48 in 9 of 9 pages with a queue", proven=True)
    capture = sampled(48, 16, subject=Subject(max_num_seqs=48), events=(event,))
    settled, warnings = settle(capture, {"max_num_seqs": cap})
    assert settled.subject.max_num_seqs == (cap if is_used else 48)
    refused = (
        f"--max-num-seqs was not used: {cap} was given, and running stood at 48 in 9 of 9 pages "
        "with a queue."
    )
    assert warnings == (() if is_used else (refused,))
    assert (event in settled.events) is not is_used


# A cap of 101 is at its limit from 95.95 running on, one of 102 from 96.9 on.
@pytest.mark.parametrize(
    ("cap", "word"), [(101, ""), (102, ", so that by this word no request waited for a slot")]
)
def test_a_cap_that_nothing_states_is_the_users_word(cap: int, word: str) -> None:
    how = "running stood at 96 in 4 of 5 lines with a queue"
    capture = sampled(96, 16, subject=Subject(max_num_seqs=96), events=(inferred(seen=how),))
    settled, warnings = settle(capture, {"max_num_seqs": cap})
    assert warnings == ()
    assert [e.data["sentence"] for e in settled.events] == [
        f"The cap of {cap} is the word of --max-num-seqs: nothing recorded states it. At most 96 "
        f"ran at once while up to 16 waited{word}. Without it the cap would be taken from what "
        f"ran: {how}."
    ]


def test_a_cap_that_holds_nobody_back_needs_no_word() -> None:
    assert settle(sampled(40), {"max_num_seqs": 64})[0].events == ()
    stated = sampled(40, 16, subject=Subject(max_num_seqs=64))
    assert settle(stated, {"max_num_seqs": 64})[0].events == ()  # the file says the same


@pytest.mark.parametrize(
    ("name", "recorded", "stated"),
    [
        ("dtype", "fp8", "bf16"),
        ("kv_dtype", "fp8", "bf16"),
        ("num_devices", 4, 1),
        ("max_num_seqs", 256, 512),
        ("concurrency", 16, 5),
    ],
)
def test_what_a_file_states_goes_before_an_option(name: str, recorded: Any, stated: Any) -> None:
    capture = Capture(subject=dataclasses.replace(Subject(), **{name: recorded}))
    settled, warnings = settle(capture, {name: stated})
    assert getattr(settled.subject, name) == recorded
    (warning,) = warnings
    assert warning.endswith(f" {stated} was given, and the capture itself says {recorded}.")
    assert settle(capture, {name: recorded}) == (capture, ())
    assert settle(Capture(), {name: stated})[1] == ()


def test_more_devices_than_can_share_a_model() -> None:
    """llama-3-8b has 32 heads in each of 32 layers: 1,024 shares of one head."""
    model = load_model("llama-3-8b")
    settled, warnings = settle(Capture(), {"model": model, "num_devices": 1024})
    assert (settled.subject.num_devices, warnings) == (1024, ())
    settled, warnings = settle(Capture(), {"model": model, "num_devices": 1025})
    assert settled.subject.num_devices == 1
    assert warnings == (
        "--gpus was not used: 1,025 was given, and llama-3-8b has 32 attention heads in each of 32 "
        "layers to share.",
    )


def test_one_device_is_stated_by_a_log_alone() -> None:
    assert settle(Capture(), {"num_devices": 2})[0].subject.num_devices == 2
    settled, warnings = settle(logged(tensor_parallel=1.0), {"num_devices": 2})
    assert (settled.subject.num_devices, len(warnings)) == (1, 1)


def test_another_device_than_the_recorded_one() -> None:
    seen = Capture(subject=Subject(device=load_device("h100-sxm")))
    settled, warnings = settle(seen, {"device": load_device("l4")})
    assert settled.subject.device == load_device("h100-sxm")
    assert warnings == ("--gpu was not used: l4 was given, and the capture itself says h100-sxm.",)
    # A description of the user's own may say of the device what the table does not.
    own = dataclasses.replace(load_device("h100-sxm"), name="my h100", sources={})
    assert settle(seen, {"device": own})[0].subject.device == own


@pytest.mark.parametrize(
    ("served", "model", "is_used"),
    [
        ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b", True),
        ("meta-llama/Meta-Llama-3-70B-Instruct", "llama-3-8b", False),  # 8.8 times as large
        ("Qwen/Qwen3-8B", "llama-3-8b", False),
        ("Qwen/Qwen3-0.6B", "qwen3-0.6b", True),
        ("deepseek-ai/DeepSeek-R1-Distill-Llama-8B", "llama-3-8b", True),
        ("deepseek-ai/DeepSeek-R1-Distill-Qwen-7B", "llama-3-8b", False),
        ("mistralai/Mixtral-8x7B-v0.1", "mistral-7b", False),
        ("my-own-name", "llama-3-70b", True),  # tells nothing
        ("/models/llama", "llama-3-70b", True),
        # 8.03 · 1.6 = 12.85
        ("llama-12.8B", "llama-3-8b", True),
        ("llama-12.9B", "llama-3-8b", False),
    ],
)
def test_a_model_of_another_name_or_size(served: str, model: str, is_used: bool) -> None:
    settled, warnings = settle(logged(model=served), {"model": load_model(model)})
    assert (settled.subject.model is not None) is is_used
    assert len(warnings) == (0 if is_used else 1)
    if warnings:
        assert warnings[0].startswith(f"--model was not used: {model} (")
        assert f"the capture is of {served}; " in warnings[0]


# Llama-3-8B has 8,030,261,248 parameters: 14.96 GiB in bf16. Two thirds of that are 9.97 GiB.
@pytest.mark.parametrize(
    ("gib", "devices", "is_used"),
    [(15.0, 1, True), (10.1, 1, True), (9.9, 1, False), (15.0, 2, False), (5.6, 1, False)],
)
def test_weights_of_another_size_than_those_loaded(gib: float, devices: int, is_used: bool) -> None:
    subject = Subject(dtype="bf16", num_devices=devices)
    capture = logged(subject, weights_bytes=gib * 2**30)
    settled, warnings = settle(capture, {"model": load_model("llama-3-8b")})
    assert (settled.subject.model is not None) is is_used
    assert [w.endswith("check --model, --dtype and --gpus.") for w in warnings] == [True] * (
        not is_used
    )


def test_the_checkpoints_dtype_is_not_that_of_another_method() -> None:
    plain = dataclasses.replace(load_model("llama-3-8b"), dtype="bf16")
    stored = dataclasses.replace(plain, dtype="int4", quantization=Quantization("gptq"))
    capture = logged(Subject(model=plain), quantization="gguf")
    assert with_own_dtype(capture)[0].dtype is None
    known = dataclasses.replace(capture, subject=Subject(model=stored))
    assert with_own_dtype(known)[0].dtype == "int4"
    assert with_own_dtype(Capture(subject=Subject(model=plain)))[0].dtype == "bf16"
    told = prepare(dataclasses.replace(capture, subject=dataclasses.replace(ON_GPU, dtype=None)), T)
    assert told.missing is not None
    assert told.missing.reason == ("the weights are quantized (gguf), in which format is not known")


T = Thresholds()


# The toy model's step: 131,072 bytes of weights, 16,384 of KV, and 128 activations of 4 bytes for
# each of eight linears and the attention, 4,608: 152,064 bytes of 294.9 MB/s are 0.5156 ms.
@pytest.mark.parametrize(("length_ms", "is_right"), [(0.414, True), (0.411, False)])
def test_a_step_quicker_than_its_bytes(length_ms: float, is_right: bool) -> None:
    assert IMPOSSIBLE == 1.25  # so the line lies at 0.4125 ms
    run = prepare(Capture(subject=ON_GPU, steps=decodes(30, length_ms)), T)
    assert (run.cost is not None) is is_right
    assert (run.missing is None) is is_right


def test_what_cannot_be_right_is_said_and_nothing_rests_on_it() -> None:
    found = diagnose(Capture(subject=ON_GPU, steps=decodes(30, 0.1)))
    # 135,168 of the bytes are of linears: 0.458 ms, 4.6 times 0.1 ms.
    assert found.warnings == (
        "What was said of the model and its device cannot be right: reading these weights takes "
        "4.6 times as long as a step took. Check --model, --gpu, --gpus and --dtype.",
    )
    assert found.verdict.bottleneck == "undetermined"
    assert "reading these weights takes 4.6 times as long" in found.verdict.sentence
    assert all(not phase.budget for phase in found.phases)
    assert not [m for m in found.measures if m.name.startswith(("mbu", "mfu"))]


def test_what_a_machines_own_probes_reached_is_no_most() -> None:
    device = dataclasses.replace(ON_GPU.device, kind="achievable")  # type: ignore[type-var]
    subject = dataclasses.replace(ON_GPU, device=device, model=TOY_MODEL)
    run = prepare(Capture(subject=subject, steps=decodes(30, 0.1)), T)
    assert run.missing is None
