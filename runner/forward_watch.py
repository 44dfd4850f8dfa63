"""Tells prefill from decode, and work from padding, by what a model's forward pass is given."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch import Tensor

from stallscope.runner.forward_timer import CallTimer, Clock, EventTimer, ForwardTimer

Mark = Callable[[Literal["prefill", "decode"], int], AbstractContextManager[object]]
CACHE_NAMES = ("cache", "past_key_values")  # transformers 5 renamed the argument


@dataclass(frozen=True, slots=True)
class LiveRow:
    """New tokens of a row that serves a request, and those of its request cached before them."""

    new: int
    cached: int


@dataclass(frozen=True, slots=True)
class ForwardPass:
    """A pass over `rows` times `new` tokens behind `cached` keys a row, `live` ones among them."""

    rows: int
    new: int
    cached: int
    logit_rows: int
    live: tuple[LiveRow, ...]
    start_ns: int
    end_ns: int
    forward_ns: int

    @property
    def phase(self) -> Literal["prefill", "decode"]:
        """A pass that starts a cache, or brings several tokens a row, is prefill."""
        return phase_of_pass(self.new, self.cached)

    @property
    def tokens(self) -> int:
        """Tokens that the pass computed, padding included."""
        return self.rows * self.new


def phase_of_pass(new: int, cached: int) -> Literal["prefill", "decode"]:
    """Name the phase of a pass by the new tokens of a row and the length of its cache."""
    return "decode" if new == 1 and cached else "prefill"


@dataclass(slots=True)
class _Seen:
    """What a pass was given. Masks are counted later: on a GPU that would wait for it."""

    rows: int
    new: int
    cached: int
    logit_rows: int
    token_ids: Tensor | None
    mask: Tensor | None
    start_ns: int


class ForwardWatch:
    """Hooks on a model of transformers, whoever calls it: an engine's loop or `generate`.

    A row is live if the attention mask lets its new tokens be seen, and, in decode, if it is not
    fed one of the `idle_tokens`: `generate` feeds ended rows their last token once more, then the
    pad token. `mark` opens a range around each pass; `on_pass` is called after each.
    """

    def __init__(
        self,
        model: Any,
        *,
        clock: Clock = time.perf_counter_ns,
        idle_tokens: Collection[int] = (),
        on_pass: Callable[[ForwardPass], None] | None = None,
    ) -> None:
        self.mark: Mark = lambda phase, tokens: nullcontext()
        self._clock = clock
        self._idle_tokens = frozenset(idle_tokens)
        self._on_pass = on_pass
        on_gpu = next(model.parameters()).device.type == "cuda"
        self._timer: ForwardTimer = EventTimer() if on_gpu else CallTimer(clock)
        self._names = tuple(inspect.signature(model.forward).parameters)
        self._seen: _Seen | None = None
        self._end_ns = 0
        self._range: AbstractContextManager[object] = nullcontext()
        self._hooks = (
            model.register_forward_pre_hook(self._before, with_kwargs=True),
            model.register_forward_hook(self._after, always_call=True),
        )

    def last(self) -> ForwardPass:
        """Return the last pass; call it once its results are on the host."""
        seen = self._seen
        if seen is None:
            raise ValueError("no forward pass has been seen")
        return ForwardPass(
            rows=seen.rows,
            new=seen.new,
            cached=seen.cached,
            logit_rows=seen.logit_rows,
            live=self._live(seen),
            start_ns=seen.start_ns,
            end_ns=self._end_ns,
            forward_ns=self._timer.elapsed_ns(),
        )

    def close(self) -> None:
        """Take the hooks off."""
        for hook in self._hooks:
            hook.remove()

    def _before(self, model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        given = dict(zip(self._names, args, strict=False)) | dict(kwargs)
        self._seen = seen = _seen(given, self._clock())
        self._range = self.mark(phase_of_pass(seen.new, seen.cached), seen.rows * seen.new)
        self._range.__enter__()
        self._timer.start()

    def _after(self, model: Any, args: tuple[Any, ...], output: Any) -> None:
        self._timer.stop()
        self._range.__exit__(None, None, None)
        self._end_ns = self._clock()
        if self._on_pass is not None and output is not None:
            self._on_pass(self.last())

    def _live(self, seen: _Seen) -> tuple[LiveRow, ...]:
        width = seen.cached + seen.new
        new, context = [seen.new] * seen.rows, [width] * seen.rows
        if seen.mask is not None and seen.mask.shape == (seen.rows, width):
            visible = seen.mask != 0
            new, context = visible[:, -seen.new :].sum(1).tolist(), visible.sum(1).tolist()
        is_decode = phase_of_pass(seen.new, seen.cached) == "decode"
        if is_decode and self._idle_tokens and seen.token_ids is not None:
            fed = seen.token_ids[:, -1].tolist()
            is_idle = [token in self._idle_tokens for token in fed]
            new = [0 if idle else n for n, idle in zip(new, is_idle, strict=True)]
        return tuple(LiveRow(n, c - n) for n, c in zip(new, context, strict=True) if n)


def _seen(given: Mapping[str, Any], start_ns: int) -> _Seen:
    ids = given.get("input_ids")
    rows, new = (given["inputs_embeds"] if ids is None else ids).shape[:2]
    cache = next((given[name] for name in CACHE_NAMES if given.get(name) is not None), None)
    keep = given.get("logits_to_keep", 0)
    kept = len(keep) if isinstance(keep, torch.Tensor) else min(keep or new, new)
    return _Seen(
        rows=rows,
        new=new,
        cached=0 if cache is None else int(cache.get_seq_length()),
        logit_rows=rows * kept,
        token_ids=ids,
        mask=given.get("attention_mask"),
        start_ns=start_ns,
    )
