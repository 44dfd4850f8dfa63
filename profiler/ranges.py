"""NVTX ranges of the phases, in the domain "stallscope"; nothing where nvtx is not installed."""

from __future__ import annotations

import importlib
import inspect
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Literal

DOMAIN = "stallscope"
RangeName = Literal["prefill", "decode", "mixed", "warmup"]


# One object per (name, tokens), entered again and again: a third of the cost of nvtx.annotate
# anew, and its payload never changes under another thread. nvtx up to 0.2.11 keeps one for each
# payload besides, without end; there are at most as many as there are batch and prompt sizes.
@cache
def phase_range(name: RangeName, tokens: int) -> AbstractContextManager[object]:
    """Return a range to be entered with `with`, payload `tokens`; it may be entered repeatedly."""
    annotate = _annotate()
    if annotate is None:
        return nullcontext()
    payload = {"payload": tokens} if _takes_payload(annotate) else {}
    entered: AbstractContextManager[object] = annotate(message=name, domain=DOMAIN, **payload)
    return entered


class PhaseRanges(dict[int, AbstractContextManager[object]]):
    """A phase's ranges by their tokens, looked up without a call."""

    def __init__(self, name: RangeName) -> None:
        self._name: RangeName = name

    def __missing__(self, tokens: int) -> AbstractContextManager[object]:
        entered = self[tokens] = phase_range(self._name, tokens)
        return entered


def load_ranges() -> None:
    """Import nvtx now, so that the first step does not pay for it."""
    _annotate()


@cache
def _annotate() -> Any:
    try:
        return importlib.import_module("nvtx").annotate
    except ImportError:
        return None


@cache
def _takes_payload(annotate: Any) -> bool:
    # nvtx 0.2.8 has no payloads; with NVTX_DISABLE set, annotate takes anything.
    names = inspect.signature(annotate.__init__).parameters
    return "payload" in names or "kwargs" in names
