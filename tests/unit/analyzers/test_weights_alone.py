"""A start that failed since the weights alone are more than a device has."""

from __future__ import annotations

import pytest
from capture_builders import event

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis
from stallscope.profiler.capture import Capture
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import Subject

A100 = load_device("a100-sxm4-40gb")  # 40 GiB = 42,949,672,960 bytes


def failed(stage: str | None, model: str, devices: int = 1, **facts: object) -> Diagnosis:
    data = {} if stage is None else {"stage": stage}
    facts = {"dtype": "bf16", "engine": "vllm", **facts}
    subject = Subject(model=load_model(model), device=A100, num_devices=devices, **facts)
    return diagnose(Capture(subject=subject, events=(event("oom", bytes=270 << 20, **data),)))


@pytest.mark.parametrize("stage", ["start", "starting", "weights", None])
def test_weights_that_do_not_fit_call_for_fewer_bytes_or_more_devices(stage: str | None) -> None:
    """70,553,706,496 parameters × 2 B ÷ 42,949,672,960 B = 3.285; two devices hold 1.643 each,
    and of 8 bits one holds 1.643 too: no dtype of 8 bits is enough there."""
    found = failed(stage, "llama-3-70b")
    assert "the weights alone are 329 % of the device's memory" in found.verdict.sentence
    actions = [r.action for r in found.remedies]
    assert actions == ["spread the model over more devices", "load the weights in a smaller dtype"]
    assert found.remedies[0].evidence[0] == "weights_of_memory"
    assert "asking for a smaller KV cache" in [w.action for w in found.wont_help]


def test_a_smaller_dtype_comes_first_where_it_is_enough() -> None:
    """On two devices 1.643 of each; in 8 bits 0.82."""
    found = failed("starting", "llama-3-70b", 2)
    assert "To let it start, load the weights in a smaller dtype: --quantization fp8" in (
        found.verdict.sentence
    )


def test_weights_that_fit_or_were_loaded_leave_the_stage_s_remedies() -> None:
    """On four devices 0.821 of each; and what was loaded did fit, whatever the config counts."""
    for found in (failed("starting", "llama-3-70b", 4), failed("graphs", "llama-3-70b")):
        assert "the weights alone" not in found.verdict.sentence
        assert "ask for a smaller KV cache" in [r.action for r in found.remedies]


def test_weights_kept_on_the_host_are_not_on_the_device() -> None:
    """141,107,412,992 − 107,374,182,400 = 33,733,230,592 B: 0.785 of the device."""
    found = failed("starting", "llama-3-70b", cpu_offload_bytes=100 << 30)
    assert "the weights alone" not in found.verdict.sentence


@pytest.mark.parametrize(
    ("dtype", "flag"),
    [
        ("fp32", "--dtype bf16"),
        ("bf16", None),
        ("fp16", None),
        ("fp8", None),
        (None, "--dtype bf16"),
    ],
)
def test_a_dtype_that_holds_already_is_not_offered(dtype: str | None, flag: str | None) -> None:
    subject = Subject(dtype=dtype, engine="vllm")
    found = diagnose(Capture(subject=subject, events=(event("oom", stage="weights"),)))
    remedy = next(r for r in found.remedies if r.action == "load the weights in a smaller dtype")
    assert remedy.flag.get("stallscope") == flag
    narrow = dtype == "fp8"
    assert remedy.flag["vllm"].startswith("--quantization awq" if narrow else "--quantization fp8")


def test_of_4_bits_none_is_smaller() -> None:
    subject = Subject(dtype="int4", engine="vllm")
    found = diagnose(Capture(subject=subject, events=(event("oom", stage="weights"),)))
    assert [r.action for r in found.remedies] == ["spread the model over more devices"]
