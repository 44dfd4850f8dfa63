"""A trace that tells of no LLM gets advice on its kernels, and no story of weights and prompts."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import ON_GPU

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.kernel_mix import lone_mix
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.step.indicators import limit_without_budget
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, DeviceSample, KernelSummary

MS = 1_000_000
SGEMM, HGEMM = "volta_sgemm_64x64_nt", "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_64x4_nn"


def trace(*kernels: tuple[str, int, str], phase: str = "other") -> Capture:
    """Kernels (class, ms, name) of a device that is always busy."""
    rows = [
        KernelSummary("cuda:0", 0, phase, kind, name, 1, busy_ms * MS, None)
        for kind, busy_ms, name in kernels
    ]
    busy = DeviceSample(MS, "cuda:0", "trace_kernel_busy", 0.99, "fraction")
    return Capture(kernels=tuple(rows), device_samples=(busy,))


def actions(found: Diagnosis) -> list[str]:
    return [r.action.partition(",")[0].partition(":")[0] for r in found.remedies]


SMALL = trace(("elementwise", 40, "add"), ("norm", 23, "bn"), ("gemm", 37, SGEMM))
LLM_WORDS = ("weights", "KV", "prompt", "prefix", "requests in one batch")


def all_words(found: Diagnosis) -> str:
    return " ".join(
        [
            *(f"{link.cause} {link.effect}" for link in found.verdict.chain),
            *(f"{r.action} {r.check}" for r in found.remedies),
            *(f"{w.action} {w.because}" for w in found.wont_help),
        ]
    )


@pytest.mark.parametrize(
    "capture", [SMALL, trace(("gemm", 63, SGEMM), ("norm", 37, "bn"))], ids=["bandwidth", "compute"]
)
def test_no_story_of_an_llm_without_a_sign_of_one(capture: Capture) -> None:
    found = diagnose(capture)
    assert found.verdict.bottleneck in ("bandwidth", "compute")
    assert [word for word in LLM_WORDS if word in all_words(found)] == []
    assert len(found.verdict.chain) == 1
    assert found.remedies
    how = [n.how for n in found.not_observable if n.what.startswith("what an LLM's steps")]
    assert how == [
        "add --model, and mark steps: ranges (NVTX, record_function) named prefill and decode"
    ]


def test_kernels_of_marked_steps_keep_the_story() -> None:
    marked = trace(("elementwise", 40, "add"), ("norm", 23, "bn"), ("x", 37, "k"), phase="decode")
    found = diagnose(marked)
    assert found.verdict.chain[0].cause == "every step reads all weights and the whole KV cache"
    assert not [n for n in found.not_observable if n.what.startswith("what an LLM's")]


def test_a_model_is_a_sign_of_an_llm_and_no_kernels_are_no_mix() -> None:
    assert lone_mix(SMALL) is not None
    assert lone_mix(dataclasses.replace(SMALL, subject=ON_GPU)) is None
    assert lone_mix(Capture()) is None


def test_the_sentence_names_the_kernels_there_are() -> None:
    """40 + 23 of 100 ms; a GEMV of 0.5 % is hardly any, one of 60 % comes first."""
    assert "63 % of kernel time is elementwise and norm (no GEMV)." in (
        diagnose(SMALL).verdict.sentence
    )

    def reason(*kernels: tuple[str, int, str]) -> str:
        return limit_without_budget(trace(*kernels), Thresholds(), "").reason

    few = reason(("gemv", 5, "v"), ("norm", 700, "n"), ("gemm", 295, "g"))
    assert few.endswith(" of kernel time is norm (hardly any GEMV)")
    many = reason(("gemv", 60, "v"), ("elementwise", 5, "e"), ("gemm", 35, "g"))
    assert many == "65 % of kernel time is GEMV and elementwise"


def test_bandwidth_advice_follows_what_moves_the_bytes() -> None:
    fuse, read, rows = "fuse elementwise and norm kernels", "read fewer bytes", "read them for more"
    assert actions(diagnose(SMALL)) == [fuse]
    gemv = diagnose(trace(("gemv", 70, "v"), ("norm", 24, "n"), ("other", 6, "o")))
    assert [a[: len(rows)] for a in actions(gemv)] == [read, rows]
    both = diagnose(trace(("gemv", 40, "v"), ("norm", 60, "n")))
    assert [a[: len(rows)] for a in actions(both)] == [fuse[: len(rows)], read, rows]


def test_kernels_that_a_compiler_fused_are_not_to_be_fused() -> None:
    """Of 70 ms of small kernels, 35 ms by Triton are half: then it is compiled already."""

    def fused(ms: int) -> list[str]:
        small = (("elementwise", ms, "triton_poi_fused_add_0"), ("norm", 70 - ms, "bn"))
        return actions(diagnose(trace(*small, ("gemm", 30, SGEMM))))

    assert fused(34) == ["fuse elementwise and norm kernels"]
    assert fused(35) == []


@pytest.mark.parametrize(
    ("name", "width"),
    [
        (SGEMM, "32 bits"),
        ("cudnn_infer_volta_scudnn_128x64_relu_medium_nn_v1", "32 bits"),
        ("cudnn::detail::dgrad_engine<float, 512, 6, 5, 3, 3, 3, false>", "32 bits"),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize64x256x8_stage3_ffma_aligna4", "32 bits"),
        ("sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_t", "TF32"),
        ("ampere_tf32_s1688gemm_fp32_128x128_nn", "TF32"),
        (HGEMM, "16 bits"),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64", "16 bits"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1", "16 bits"),
        ("sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn_n_tilesize128x64x64", "8 bits"),
        ("some_gemm", None),
    ],
)
def test_names_show_the_dtype_of_matrix_products(name: str, width: str | None) -> None:
    mix = lone_mix(trace(("gemm", 10, name)))
    assert mix is not None
    assert mix.width == width


@pytest.mark.parametrize(
    ("name", "says"),
    [(SGEMM, "in 16 bits or TF32"), (HGEMM, "in 8 bits"), ("some_gemm", "in which dtype")],
)
def test_a_narrower_dtype_than_the_names_show(name: str, says: str) -> None:
    found = diagnose(trace(("gemm", 80, name), ("norm", 20, "n")))
    assert found.verdict.bottleneck == "compute"
    (remedy,) = found.remedies
    assert says in remedy.action
    assert "fusing small kernels" in [w.action for w in found.wont_help]


def test_eight_bits_are_not_narrowed_and_many_small_kernels_are_fused() -> None:
    eight = "sm89_xmma_gemm_e4m3bf16_e4m3f32_f32_tn"
    assert actions(diagnose(trace(("gemm", 80, eight), ("norm", 20, "n")))) == []
    found = diagnose(trace(("gemm", 70, eight), ("norm", 30, "n")))
    assert actions(found) == ["fuse elementwise and norm kernels"]
    assert "fusing small kernels" not in [w.action for w in found.wont_help]
