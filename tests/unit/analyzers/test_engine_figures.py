"""The engine's own figures of its memory against ours, by hand and in real logs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.kv_copies import observe_copies
from stallscope.analyzers.stated.engine_figures import disagreements, engine_figures
from stallscope.profiler.capture import Capture
from stallscope.profiler.model_parts import Latent
from stallscope.profiler.models import load_model
from stallscope.profiler.server_log.reader import read_server_log
from stallscope.profiler.spec import Subject

LLAMA = load_model("llama-3-8b")
GIB = 1 << 30
# Deepseek's latent: 61 layers of 512 + 64 elements.
LATENT = replace(LLAMA, num_layers=61, num_heads=128, latent=Latent(512, 64, 128, 128, 1536))


def capture_of(subject: Subject, **said: object) -> Capture:
    return Capture(subject, meta={"server_log": said})


def test_weights_by_hand_and_where_the_line_lies() -> None:
    """llama-3-8b has 8,030,261,248 parameters of two bytes in bf16."""
    subject = Subject(LLAMA, None, 1, "bf16", "bf16")
    counted = 2 * 8_030_261_248
    (figure,) = engine_figures(capture_of(subject, weights_bytes=counted / 1.049))
    assert figure.counted == counted
    assert figure.miss == pytest.approx(0.049)
    for ratio, is_said in ((1.049, False), (1.051, True), (1 / 1.049, False), (1 / 1.06, True)):
        found = disagreements(capture_of(subject, weights_bytes=counted / ratio))
        assert bool(found) == is_said
    (said,) = disagreements(capture_of(subject, weights_bytes=counted / 1.10))
    assert "takes 16,060,522,496, 10 % more" in said
    assert "A step's weights are counted by the engine's figure." in said
    (said,) = disagreements(capture_of(subject, weights_bytes=counted / 0.90))
    assert "10 % less. A step may not read all that was loaded" in said


def test_replicas_of_a_model_each_hold_it_whole() -> None:
    """Eight devices, eight replicas: all 16 GB lie on each, as the engine says."""
    subject = Subject(LLAMA, None, 8, "bf16", "bf16")
    capture = capture_of(subject, weights_bytes=2 * 8_030_261_248, data_parallel=8)
    (figure,) = engine_figures(capture)
    assert (figure.ranks, figure.counted) == (1, 2 * 8_030_261_248)
    assert disagreements(capture) == ()


def test_a_latent_lies_whole_on_each_of_eight_ranks() -> None:
    """46.80 GiB a rank held 715,072 tokens (vLLM's lines): 70,274 bytes, where we count 70,272."""
    said = {"kv_bytes": 46.80 * GIB, "kv_tokens": 715_072, "tensor_parallel": 8}
    capture = capture_of(Subject(LATENT, None, 8, "bf16", "bf16"), **said)
    (figure,) = engine_figures(capture)
    assert figure.counted == 61 * 576 * 2 == 70_272
    assert figure.engine == pytest.approx(70_272, rel=1e-4)
    assert disagreements(capture) == ()
    found = {m.name: m for m in diagnose(capture).measures}
    assert found["kv_bytes_per_token_stated"].value == figure.engine
    assert found["kv_bytes_per_token_stated"].provenance == "derived"


def test_an_eighth_of_the_latent_would_be_said() -> None:
    """Were it split over the ranks, a pool of that size would hold eight times as many tokens."""
    said = {"kv_bytes": 46.80 * GIB, "kv_tokens": 8 * 715_072, "tensor_parallel": 8}
    capture = capture_of(Subject(LATENT, None, 8, "bf16", "bf16"), **said)
    (sentence,) = disagreements(capture)
    assert "takes 70,272, 700 % more" in sentence
    assert "Room and reads of the cache are counted by the engine's figure." in sentence
    assert sentence in diagnose(capture).notes


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        (Subject(), {"weights_bytes": 1.0, "kv_bytes": 1.0, "kv_tokens": 1.0}),
        (Subject(LLAMA, None, 2, "bf16"), {"weights_bytes": 1.0, "pipeline_parallel": 2}),
        (Subject(LLAMA, None, 1, "bf16", cpu_offload_bytes=GIB), {"weights_bytes": 1.0}),
        (
            Subject(replace(LLAMA, local_layers=16, local_window=512), None, 1, "bf16", "bf16"),
            {"kv_bytes": 1.0, "kv_tokens": 1.0},
        ),
    ],
)
def test_what_is_not_of_the_same_thing_is_not_counted(
    subject: Subject, said: dict[str, object]
) -> None:
    figures = engine_figures(capture_of(subject, **said))
    assert figures
    assert {figure.counted for figure in figures} == {None}
    assert disagreements(capture_of(subject, **said)) == ()


def test_nonsense_is_no_figure() -> None:
    for value in (0, -1.0, True, "much", None, float("nan")):
        assert engine_figures(capture_of(Subject(LLAMA), weights_bytes=value)) == ()


@pytest.mark.parametrize(
    ("file", "spec", "dtypes", "ranks"),
    [
        ("vllm__h200bench_bench3_v1.log", LLAMA, ("bf16", "bf16"), 1),
        ("vllm__infx_dsr1fp4_b200_tp4_bs16_offloadoff.server.log", LATENT, (None, "fp8"), 4),
    ],
)
def test_real_logs_agree_with_the_count(
    file: str, spec: object, dtypes: tuple[str | None, str], ranks: int, corpus: Path
) -> None:
    capture = read_server_log(corpus / "logs" / file)
    dtype, kv_dtype = dtypes
    subject = Subject(spec, None, ranks, dtype, kv_dtype)  # type: ignore[arg-type]
    figures = engine_figures(replace(capture, subject=subject))
    (cache,) = [f for f in figures if f.measure == "kv_bytes_per_token_stated"]
    assert cache.miss == pytest.approx(0.0, abs=2e-4)


def test_weights_in_four_bits_have_a_cache_in_sixteen() -> None:
    """131,072 bytes a token: 2 · 32 layers · 8 heads · 128 · 2 bytes, whatever the weights are."""
    said = {"kv_bytes": 131_072 * 1e5, "kv_tokens": 1e5}
    (figure,) = engine_figures(capture_of(Subject(LLAMA, None, 1, "int4"), **said))
    assert figure.counted == 131_072
    assert disagreements(capture_of(Subject(LLAMA, None, 1, "int4"), **said)) == ()
    assert observe_copies(capture_of(Subject(LLAMA, None, 4, "int4"), **said)) is not None
    shared = {**said, "kv_bytes": 131_072 / 4 * 1e5}
    assert observe_copies(capture_of(Subject(LLAMA, None, 4, "int4"), **shared)) is None


def test_an_overridden_pool_tells_no_bytes_a_token() -> None:
    said = {"kv_bytes": 40.0 * GIB, "kv_tokens": 8192.0}
    subject = Subject(LLAMA, None, 1, "bf16", "bf16")
    assert engine_figures(capture_of(subject, **said))
    assert engine_figures(capture_of(subject, **said, kv_blocks_override=512.0)) == ()


def test_sglang_and_tensorrt_state_a_pool_with_its_tokens(corpus: Path) -> None:
    """Llama-3.2-3B: 28 layers · 8 heads · 128 · 2 · 2 bytes; Llama-3-8B has 32 layers."""
    for file, layers, weights in (
        ("sglang__smallpool_fdeaea3.log", 28, 6.13),
        ("trtllm__h200bench_serve_engine.log", 32, 14.96),
    ):
        said = read_server_log(corpus / "logs" / file).meta["server_log"]
        each = said["kv_bytes"] / said["kv_tokens"]
        assert each == pytest.approx(layers * 8 * 128 * 2 * 2, rel=5e-3)
        assert said["weights_bytes"] == pytest.approx(weights * GIB, rel=1e-3)


def test_pools_of_several_kinds_tell_no_bytes_a_token(corpus: Path) -> None:
    """Layers with a window and a draft model of their own: the model's weights are the first."""
    said = read_server_log(corpus / "logs" / "dgxspark__sglang-int4.log").meta["server_log"]
    assert "kv_bytes" not in said
    assert said["kv_tokens"] == 185_897
    assert said["weights_bytes"] == pytest.approx(67.56 * GIB)
