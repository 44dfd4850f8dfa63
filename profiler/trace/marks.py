"""What a named range says about the engine's step that it marks."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

MarkedPhase = Literal["prefill", "decode", "mixed", "other"]


@dataclass(frozen=True, slots=True)
class StepMark:
    """One step's work as its mark states it; None is what the mark does not say.

    `context_tokens` counts KV entries read and `attention_pairs` (new token, attended key) pairs,
    as in capture.Step.
    """

    phase: MarkedPhase
    engine: str
    warmup: bool = False
    prefill_requests: int | None = None
    prefill_tokens: int | None = None
    decode_requests: int | None = None
    context_tokens: int | None = None
    attention_pairs: int | None = None


_PLAIN = re.compile(r"(prefill|decode|mixed|warmup)\b", re.IGNORECASE)


def step_mark(text: str, payload: int | None) -> StepMark | None:
    """Read a range's text and its integer payload; None where it marks no step."""
    plain = _PLAIN.match(text)
    if plain is None:
        return None
    name = plain[1].lower()
    if name == "warmup":
        return StepMark("other", "ranges", warmup=True)
    if name == "prefill":
        return StepMark("prefill", "ranges", prefill_tokens=payload)
    if name == "decode":
        return StepMark("decode", "ranges", decode_requests=payload)
    return StepMark("mixed", "ranges")
