"""Ranges that people name after the phase: prefill, "decode_step_12", "Prefill 512"."""

from __future__ import annotations

import re

from stallscope.profiler.trace.mark import StepMark

_PHASES = {
    "prefill": "prefill",
    "prefilling": "prefill",
    "decode": "decode",
    "decoding": "decode",
    "mixed": "mixed",
    "warmup": "warmup",
}
# Beside the phase's name only words that leave it a step: "decode_attention" is a part of one, and
# "tokenizer.decode" has nothing to do with it.
_BESIDE = frozenset(
    ("batch", "bs", "chunk", "chunked", "engine", "forward", "i", "idx", "index", "iter")
    + ("iteration", "len", "llm", "loop", "model", "num", "pass", "phase", "prompt", "req")
    + ("request", "requests", "run", "seq", "seqs", "size", "stage", "step", "steps", "tok")
    + ("token", "tokens")
)
_WARM_UP = re.compile(r"warm[\s_-]up", re.IGNORECASE)
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|\d+|[^\x00-\x7f]+")
_LONGEST = 80


def plain_mark(text: str, payload: int | None) -> StepMark | None:
    """Read a range named after one phase, with numbers and words like "step" beside it.

    The payload counts tokens only where the name stands alone, as in our own ranges: new prompt
    tokens of a prefill, sequences of a decode.
    """
    if len(text) > _LONGEST:
        return None
    words = [w.lower() for w in _WORD.findall(_WARM_UP.sub("warmup", text))]
    phases = {_PHASES[w] for w in words if w in _PHASES}
    others = [w for w in words if w not in _PHASES]
    if not phases or not all(w in _BESIDE or w.isdigit() for w in others):
        return None
    if "warmup" in phases:
        return StepMark("other", "ranges", warmup=True)
    if len(phases) > 1 or "mixed" in phases:
        return StepMark("mixed", "ranges")
    tokens = payload if not others else None
    if phases == {"prefill"}:
        return StepMark("prefill", "ranges", prefill_tokens=tokens)
    return StepMark("decode", "ranges", decode_requests=tokens)
