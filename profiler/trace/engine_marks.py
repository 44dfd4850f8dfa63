"""Marks that serving engines put around each step, read from their text.

vLLM: `annotate_profile` in vllm/v1/worker/gpu_worker.py. SGLang: `build_step_span_name` in
sglang/srt/model_executor, modes from `ForwardMode`. TensorRT-LLM: `_forward_step` in
tensorrt_llm/_torch/pyexecutor/py_executor.py. ATOM: its model runner's annotations.
"""

from __future__ import annotations

import re

from stallscope.profiler.trace.mark import NOTHING, StepMark, Work, mark_of

_GROUP = r"\d+\([^()]*\)"
_VLLM = re.compile(rf"execute_(?:\d+_)?context_({_GROUP})_generation_({_GROUP})")
_VLLM_GROUP = re.compile(
    r"(?P<requests>\d+)\((?:"
    r"sq(?P<sq>\d+)sk(?P<sk>\d+)sqsq(?P<sqsq>\d+)sqsk(?P<sqsk>\d+)"
    r"|(?P<tokens>\d+)(?:_(?P<squares>\d+))?)\)"
)
_VLLM_OLD = re.compile(r"execute_new_(\d+)_cached_(\d+)$")
_TRTLLM = re.compile(
    r"\[Executor\] _forward_step(?: \d+)?: (\d+) ctx reqs, (?:(\d+) ctx tokens, )?(\d+) gen reqs"
)
_BRACKETS = re.compile(r"(?P<mode>prefill|decode|step)\[(?P<fields>.*)\]$", re.DOTALL)
_SGLANG_MODE = re.compile(r"([A-Z][A-Z0-9_]*) bs=")
_FIELD = re.compile(r"\b([a-z_]+)=(\d+)")

# Speculative decoding extends and verifies drafts between two decodes of the target model.
_SGLANG_DECODE = frozenset(("TARGET_VERIFY", "DRAFT_EXTEND", "DRAFT_EXTEND_V2"))


def engine_mark(text: str) -> StepMark | None:
    """Read an engine's step mark; None where the text is none."""
    if text.startswith("execute_"):
        return _vllm(text)
    if text.startswith("[Executor] _forward_step"):
        return _trtllm(text)
    brackets = _BRACKETS.match(text)
    if brackets is None:
        return None
    fields = {name: int(value) for name, value in _FIELD.findall(brackets["fields"])}
    if brackets["mode"] == "step":
        return _sglang(brackets["fields"], fields)
    return _atom(brackets["mode"], fields)


def _vllm(text: str) -> StepMark | None:
    found = _VLLM.match(text)
    if found is not None:
        context, generation = _vllm_work(found[1]), _vllm_work(found[2])
        return (
            None if context is None or generation is None else mark_of("vllm", context, generation)
        )
    old = _VLLM_OLD.match(text)
    if old is None:
        return None
    new, cached = int(old[1]), int(old[2])
    # A cached request may be in the middle of its prompt, so how many of them decode is not said.
    return mark_of("vllm", Work(new), NOTHING if cached == 0 else Work())


def _vllm_work(text: str) -> Work | None:
    found = _VLLM_GROUP.fullmatch(text)
    if found is None:
        return None
    requests = int(found["requests"])
    if requests == 0:
        return NOTHING
    if found["sq"] is not None:
        return Work(requests, *(int(found[name]) for name in ("sq", "sk", "sqsq", "sqsk")))
    squares = found["squares"]
    return Work(requests, int(found["tokens"]), squares=None if squares is None else int(squares))


def _trtllm(text: str) -> StepMark | None:
    found = _TRTLLM.match(text)
    if found is None:
        return None
    context, generation = int(found[1]), int(found[3])
    tokens = None if found[2] is None else int(found[2])
    return mark_of(
        "tensorrt-llm",
        NOTHING if context == 0 else Work(context, tokens),
        NOTHING if generation == 0 else Work(generation),
    )


def _sglang(text: str, fields: dict[str, int]) -> StepMark | None:
    found = _SGLANG_MODE.match(text)
    if found is None:
        return None
    mode, size = found[1], fields.get("bs")
    if mode in ("EXTEND", "SPLIT_PREFILL"):
        return mark_of("sglang", _sglang_work("c", fields, size, fields.get("toks")), NOTHING)
    if mode == "DECODE":
        return mark_of("sglang", NOTHING, _sglang_work("g", fields, size, size))
    if mode == "MIXED":
        context = _sglang_work("c", fields, fields.get("c"), None)
        generation = _sglang_work("g", fields, fields.get("g"), fields.get("g"))
        return mark_of("sglang", context, generation)
    if mode in _SGLANG_DECODE:
        return mark_of("sglang", NOTHING, Work(size if mode == "TARGET_VERIFY" else None))
    return StepMark("other", "sglang")


def _sglang_work(
    group: str, fields: dict[str, int], requests: int | None, queries: int | None
) -> Work:
    if requests == 0:
        return NOTHING
    return Work(
        requests,
        fields.get(f"{group}_sq", queries),
        fields.get(f"{group}_sk"),
        fields.get(f"{group}_sqsq"),
        fields.get(f"{group}_sqsk"),
    )


def _atom(mode: str, fields: dict[str, int]) -> StepMark | None:
    if "bs" not in fields or "tok" not in fields:
        return None
    sums = Work(
        fields["bs"], fields["tok"], fields.get("sk"), fields.get("sqsq"), fields.get("sqsk")
    )
    if mode == "prefill":
        return mark_of("atom", sums, NOTHING)
    if not fields.get("p"):
        return mark_of("atom", NOTHING, sums)
    return StepMark(
        "mixed",
        "atom",
        prefill_requests=fields["p"],
        decode_requests=fields.get("d"),
        context_tokens=sums.keys,
        attention_pairs=sums.pairs,
    )
