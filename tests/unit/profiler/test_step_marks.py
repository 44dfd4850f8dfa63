"""Marks of engine steps, each from a string that an engine, its tests or a real trace holds."""

from __future__ import annotations

import pytest

from stallscope.profiler.trace.marks import StepMark, step_mark
from stallscope.profiler.trace.step_parts import StepPart, step_part


def mark(
    phase: str,
    engine: str,
    requests: tuple[int | None, int | None] = (None, None),
    *,
    tokens: int | None = None,
    context: int | None = None,
    pairs: int | None = None,
) -> StepMark:
    """Build a mark; `requests` are those in prefill and in decode."""
    return StepMark(
        phase,  # type: ignore[arg-type]
        engine,
        prefill_requests=requests[0],
        prefill_tokens=tokens,
        decode_requests=requests[1],
        context_tokens=context,
        attention_pairs=pairs,
    )


VLLM = {
    "execute_context_2(14721)_generation_0(0)": mark("prefill", "vllm", (2, 0), tokens=14721),
    "execute_context_0(0)_generation_64(64)": mark("decode", "vllm", (0, 64), tokens=0),
    # Four tokens a request: speculative decoding.
    "execute_context_0(0)_generation_32(128)": mark("decode", "vllm", (0, 32), tokens=0),
    "execute_context_2(6144)_generation_3(3)": mark("mixed", "vllm", (2, 3), tokens=6144),
    "execute_context_0(0)_generation_0(0)": mark(
        "other", "vllm", (0, 0), tokens=0, context=0, pairs=0
    ),
    # Σq and Σq² of one request: 888² = 788,544 (corpus: b200_eager).
    "execute_context_1(888_788544)_generation_0(0)": mark("prefill", "vllm", (1, 0), tokens=888),
    # 32 requests of one new token each: as many pairs as keys (corpus: SGLang's Qwen3-8B).
    "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)": mark(
        "decode", "vllm", (0, 32), tokens=0, context=32785, pairs=32785
    ),
    # Prompts of 7,803 and 6,918 tokens, afresh: Σq(q + 1)/2 = 30,447,306 + 23,932,821.
    "execute_14721_context_2(sq14721sk14721sqsq108745533sqsk108745533)"
    "_generation_0(sq0sk0sqsq0sqsk0)": mark(
        "prefill", "vllm", (2, 0), tokens=14721, context=14721, pairs=54_380_127
    ),
    # Four new tokens each for 32 requests: 262,144 − (512 − 128)/2 = 261,952.
    "execute_128_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq128sk65536sqsq512sqsk262144)": mark(
        "decode", "vllm", (0, 32), tokens=0, context=65536, pairs=261_952
    ),
    # 7,144 + 6,144 keys; 23,019,520 − (20,971,520 − 6,144)/2 + 6,144 pairs.
    "execute_6147_context_2(sq6144sk7144sqsq20971520sqsk23019520)"
    "_generation_3(sq3sk6144sqsq3sqsk6144)": mark(
        "mixed", "vllm", (2, 3), tokens=6144, context=13_288, pairs=12_542_976
    ),
    "execute_new_1_cached_0": mark("prefill", "vllm", (1, 0)),
    "execute_new_0_cached_7": mark("decode", "vllm", (0, None)),
    "execute_new_2_cached_7": mark("mixed", "vllm", (2, None)),
}
SGLANG = {
    "step[EXTEND bs=2 toks=14721]": mark("prefill", "sglang", (2, 0), tokens=14721),
    "step[DECODE bs=64]": mark("decode", "sglang", (0, 64), tokens=0),
    "step[MIXED bs=2]": mark("mixed", "sglang"),
    "step[TARGET_VERIFY bs=8]": mark("decode", "sglang", (0, 8), tokens=0),
    "step[DRAFT_EXTEND_V2 bs=8]": mark("decode", "sglang", (0, None), tokens=0),
    "step[SPLIT_PREFILL bs=3]": mark("prefill", "sglang", (3, 0)),
    "step[IDLE bs=0]": StepMark("other", "sglang"),
    # As the engine writes it: no c_sq, toks says it. 120,007,533 − (108,745,533 − 14,721)/2.
    "step[EXTEND bs=2 toks=14721 c_sqsq=108745533 c_sqsk=120007533 c_sk=16221]": mark(
        "prefill", "sglang", (2, 0), tokens=14721, context=16221, pairs=65_642_127
    ),
    "step[DECODE bs=64 g_sqsq=64 g_sqsk=131072 g_sk=131072]": mark(
        "decode", "sglang", (0, 64), tokens=0, context=131_072, pairs=131_072
    ),
    # One chunk of 5 tokens behind 3 (40 − 10 = 30 pairs), one decode over 12 keys.
    "step[MIXED bs=2 c=1 g=1 c_sq=5 c_sk=8 c_sqsq=25 c_sqsk=40 g_sq=1 g_sk=12 g_sqsq=1 "
    "g_sqsk=12]": mark("mixed", "sglang", (1, 1), tokens=5, context=20, pairs=42),
    "step[MIXED bs=1 c=1 g=0 c_sq=3 c_sk=3 c_sqsq=9 c_sqsk=9 g_sq=0 g_sk=0 g_sqsq=0 "
    "g_sqsk=0]": mark("prefill", "sglang", (1, 0), tokens=3, context=3, pairs=6),
}
TENSORRT = {
    "[Executor] _forward_step 12: 1 ctx reqs, 0 gen reqs": mark("prefill", "tensorrt-llm", (1, 0)),
    "[Executor] _forward_step: 2 ctx reqs, 30 gen reqs": mark("mixed", "tensorrt-llm", (2, 30)),
    "[Executor] _forward_step 60000: 0 ctx reqs, 0 ctx tokens, 32 gen reqs": mark(
        "decode", "tensorrt-llm", (0, 32), tokens=0
    ),
    "[Executor] _forward_step 7: 3 ctx reqs, 512 ctx tokens, 0 gen reqs": mark(
        "prefill", "tensorrt-llm", (3, 0), tokens=512
    ),
}
ATOM = {
    "prefill[bs=2 tok=14721 ctx=[7803, 6918]]": mark("prefill", "atom", (2, 0), tokens=14721),
    "decode[bs=64 tok=64 d=64 sqsq=64 sqsk=131072 sk=131072]": mark(
        "decode", "atom", (0, 64), tokens=0, context=131_072, pairs=131_072
    ),
    "decode[bs=117/128 tok=117 d=117]": mark("decode", "atom", (0, 117), tokens=0),
    # 1,114,112 − (132,612 − 384)/2 pairs over both kinds.
    "decode[bs=128 tok=384 p=2 d=126 sqsq=132612 sqsk=1114112 sk=258048 tbo=1]": mark(
        "mixed", "atom", (2, 126), context=258_048, pairs=1_047_998
    ),
}


def test_only_a_group_that_is_empty_says_no_tokens() -> None:
    """A decode-only step of a form that counts prompt tokens has none of them."""
    assert step_mark("[Executor] _forward_step 3: 0 ctx reqs, 9 gen reqs", None) == mark(
        "decode", "tensorrt-llm", (0, 9), tokens=0
    )


@pytest.mark.parametrize(("text", "expected"), (VLLM | SGLANG | TENSORRT | ATOM).items())
def test_an_engine_says_what_a_step_holds(text: str, expected: StepMark) -> None:
    assert step_mark(text, None) == expected


@pytest.mark.parametrize(
    ("text", "payload", "expected"),
    [
        ("prefill", 512, StepMark("prefill", "ranges", prefill_tokens=512)),
        ("decode", 8, StepMark("decode", "ranges", decode_requests=8)),
        ("mixed", 40, StepMark("mixed", "ranges")),
        ("warmup", 3, StepMark("other", "ranges", warmup=True)),
        ("prefill", None, StepMark("prefill", "ranges")),
        ("decode_step_12", None, StepMark("decode", "ranges")),
        ("decode_step_12", 7, StepMark("decode", "ranges")),  # whatever the 7 counts
        ("Prefill 512", None, StepMark("prefill", "ranges")),
        ("PREFILL", None, StepMark("prefill", "ranges")),
        ("decodeStep3", None, StepMark("decode", "ranges")),
        ("Decode[4]", None, StepMark("decode", "ranges")),
        ("step: decode (bs=4)", None, StepMark("decode", "ranges")),
        ("warm_up_2", None, StepMark("other", "ranges", warmup=True)),
        ("prefill warm-up", None, StepMark("other", "ranges", warmup=True)),
        ("prefill+decode", None, StepMark("mixed", "ranges")),
    ],
)
def test_a_plain_range_says_its_phase(text: str, payload: int | None, expected: StepMark) -> None:
    assert step_mark(text, payload) == expected


@pytest.mark.parametrize(
    "text",
    [
        "ProfilerStep#3",
        "aten::mm",
        "decode_attention",
        "tokenizer.decode",
        "mixed precision",
        "step",
        "",
        "capture_32_DECODE",
        "gpu_model_runner: forward",
        "execute_model",
        "execute_context_two(1)_generation_0(0)",
        "step[what]",
        "prefill[of something]",
        "nccl:all_reduce",
        "{'Module': 'model.model.layers.0.self_attn', 'Inputs': [[2048, 7168]]}",
        "## Call CompiledFxGraph fud64jsrxcxliekg7lptyw24yz5k3oa65b73wjfbhz6j2fg6ouu7 ##",
    ],
)
def test_other_ranges_mark_no_step(text: str) -> None:
    assert step_mark(text, 1) is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("gpu_model_runner: forward", StepPart("forward", "forward")),
        ("v2_gpu_model_runner: prepare_inputs", StepPart("prepare", "prepare_inputs")),
        ("gpu_model_runner: preprocess", StepPart("prepare", "preprocess")),
        ("gpu_model_runner: sample", StepPart("sample", "sample")),
        ("v2_gpu_model_runner: sample_logits", StepPart("sample", "sample_logits")),
        ("gpu_model_runner: bookkeep", StepPart("bookkeep", "bookkeep")),
        ("gpu_model_runner: postprocess", StepPart("bookkeep", "postprocess")),
        ("gpu_model_runner: draft", StepPart("draft", "draft")),
        ("gpu_model_runner: eplb", StepPart("other", "eplb")),
        ("schedule: allocate_slots", StepPart("schedule", "allocate_slots")),
        ("llm_engine step: get_output", StepPart("output", "get_output")),
        ("Preprocess", StepPart("prepare", "Preprocess")),
        (
            "{'Module': 'model.model.layers.0.self_attn.fused_qkv_a_proj_with_mqa', "
            "'TrainableParams': {'weight': [2112, 7168], 'weight_scale_inv': [17, 56]}, "
            "'Inputs': [[2048, 7168]]}",
            StepPart("module", "model.model.layers.0.self_attn.fused_qkv_a_proj_with_mqa"),
        ),
        ("execute_context_0(0)_generation_64(64)", None),
        ("preprocess the data", None),
    ],
)
def test_parts_of_a_step_are_told_by_kind(text: str, expected: StepPart | None) -> None:
    assert step_part(text) == expected
