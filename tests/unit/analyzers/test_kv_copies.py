"""Copies of the KV cache over ranks, by what the engine states of its pool."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from capture_builders import event, gauges

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.kv_copies import observe_copies
from stallscope.profiler.capture import Capture
from stallscope.profiler.models import load_model
from stallscope.profiler.server_log.reader import read_server_log
from stallscope.profiler.spec import Latent, ModelSpec, Subject

LLAMA = load_model("llama-3-8b")
LATENT = dataclasses.replace(LLAMA, num_layers=61, latent=Latent(512, 64, 128, 128))
WHOLE = 2 * 32 * 8 * 128 * 2  # layers, KV heads, head_dim, bf16: 131,072 bytes a token


def start(
    stored: float, *, ranks: int = 2, model: ModelSpec | None = LLAMA, **said: Any
) -> Capture:
    """Return a start whose pool holds 1,000 tokens of so many bytes on each rank."""
    stated = {"kv_tokens": 1000.0, "kv_bytes": 1000.0 * stored, **said}
    subject = Subject(model=model, num_devices=ranks, dtype="bf16", engine="vllm")
    return Capture(subject=subject, meta={"server_log": stated})


def test_a_whole_latent_on_each_of_eight_ranks() -> None:
    """46.80 GiB ÷ 715,072 tokens = 70,274 bytes; 61 · (512 + 64) · 2 = 70,272: eight copies."""
    stated = {"kv_tokens": 715_072.0, "kv_bytes": 46.80 * 2**30}
    found = observe_copies(start(0, ranks=8, model=LATENT, **stated))
    assert found is not None
    assert found.whole_bytes == 70_272
    assert found.copies == pytest.approx(8 * 70_274 / 70_272, rel=1e-5)
    assert "5.72 million tokens, not 0.715 million" in found.sentence


@pytest.mark.parametrize(
    ("share", "is_said"),
    [(0.96, True), (0.94, False), (0.5, False), (1.04, True), (1.06, False)],
)
def test_two_ranks_hold_nearly_two_copies(share: float, is_said: bool) -> None:
    """0.95 · 2 = 1.9 copies. More than one for each rank would be another count of bytes."""
    assert (observe_copies(start(share * WHOLE)) is not None) is is_said


@pytest.mark.parametrize(
    "blind",
    [
        start(WHOLE, ranks=1),
        start(WHOLE, model=None),
        start(WHOLE, kv_tokens=None),
        start(WHOLE, kv_bytes=float("inf")),
        start(WHOLE, pipeline_parallel=2),
        start(WHOLE, model=dataclasses.replace(LLAMA, sliding_window=4096)),
    ],
    ids=["one rank", "no model", "no tokens", "no bytes", "a pipeline", "a window"],
)
def test_what_does_not_tell_says_nothing(blind: Capture) -> None:
    assert observe_copies(blind) is None


def test_the_log_s_own_ranks_go_first() -> None:
    assert observe_copies(start(WHOLE / 2, ranks=1, tensor_parallel=4)) is not None
    assert observe_copies(start(WHOLE / 4, ranks=8, tensor_parallel=4)) is None


def test_replicas_share_nothing_and_copy_nothing() -> None:
    """Eight devices as eight replicas: each keeps its own requests."""
    assert observe_copies(start(WHOLE, ranks=8, data_parallel=8)) is None
    found = observe_copies(start(WHOLE, ranks=8, data_parallel=4))
    assert found is not None
    assert found.ranks == 2


def test_of_a_start_alone_it_is_the_verdict_with_little_confidence() -> None:
    found = diagnose(start(WHOLE))
    assert (found.verdict.bottleneck, found.verdict.confidence) == ("capacity", 0.6)
    (remedy,) = found.remedies
    assert "--decode-context-parallel-size" in remedy.flag["vllm"]
    assert found.wont_help[0].action == "more tensor-parallel ranks for the KV cache"
    (copies,) = [m for m in found.measures if m.name == "kv_copies_stated"]
    assert copies.value == pytest.approx(2.0)


def test_a_start_that_failed_failed_for_what_it_says() -> None:
    capture = start(WHOLE)
    said = {"sentence": "The server did not start: x", "blocks": ["verdict"]}
    failed = (
        event("error", type="RuntimeError", message="x"),
        event("check", **said, **{"class": "undetermined"}),
    )
    assert diagnose(dataclasses.replace(capture, events=failed)).verdict.bottleneck == (
        "undetermined"
    )


def test_under_load_it_is_a_note_beside_what_limits() -> None:
    idle = gauges(1000, running=(0.0,) * 20, waiting=(0.0,) * 20)
    found = diagnose(dataclasses.replace(start(WHOLE), engine_samples=idle))
    assert found.verdict.bottleneck == "none"
    assert any("2 ranks hold 2.0 copies" in note for note in found.notes)


def test_a_real_server_of_four_ranks(corpus: Path) -> None:
    """DeepSeek-R1, fp8 KV: 62.24 GiB ÷ 1,901,888 tokens = 35,139 bytes; 61 · 576 = 35,136."""
    log = "vllm__infx_dsr1fp4_b200_tp4_bs16_offloadoff.server.log"
    capture = read_server_log(corpus / "logs" / log)
    subject = dataclasses.replace(capture.subject, model=LATENT)
    assert (subject.num_devices, subject.kv_dtype) == (4, "fp8")
    found = observe_copies(dataclasses.replace(capture, subject=subject))
    assert found is not None
    assert found.stored_bytes == pytest.approx(35_139, abs=1)
    assert found.copies == pytest.approx(4.0, abs=0.001)
