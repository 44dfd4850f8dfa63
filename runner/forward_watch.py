"""Tells prefill from decode, and work from padding, by what a model's forward pass is given."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import torch
from torch import Tensor

from stallscope.runner.forward_timer import CallTimer, Clock, EventTimer
from stallscope.runner.thread_pass import Claim, ThreadPass

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
    """Name the phase of a pass by the new tokens of a row and the length of its cache.

    A prompt's last token alone, behind a cache of the rest, is decode: it does the same work.
    """
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
    pad token. `mark` opens a range around each pass; `on_pass` is called after each. Threads may
    call the model at once. A pass within another of the same `owner` (by default this watch) is
    part of that one.
    """

    def __init__(
        self,
        model: Any,
        *,
        clock: Clock = time.perf_counter_ns,
        idle_tokens: Collection[int] = (),
        on_pass: Callable[[ForwardPass], None] | None = None,
        owner: object = None,
    ) -> None:
        self.mark: Mark = lambda phase, tokens: nullcontext()
        self._clock = clock
        self.idle_tokens = frozenset(idle_tokens)
        self._on_pass = on_pass
        self._owner = self if owner is None else owner
        self._claim = Claim()
        on_gpu = next(model.parameters()).device.type == "cuda"
        new_timer = EventTimer if on_gpu else partial(CallTimer, clock)
        self._own: ThreadPass[_Seen] = ThreadPass(new_timer)
        self._names = tuple(inspect.signature(model.forward).parameters)
        self._hooks = (
            model.register_forward_pre_hook(self._before, with_kwargs=True),
            model.register_forward_hook(self._after, always_call=True),
        )

    def last(self) -> ForwardPass:
        """Return this thread's last pass; call it once its results are on the host."""
        own, seen = self._own, self._own.seen
        if seen is None:
            raise ValueError("no forward pass has been seen")
        return ForwardPass(
            rows=seen.rows,
            new=seen.new,
            cached=seen.cached,
            logit_rows=seen.logit_rows,
            live=self._live(seen),
            start_ns=seen.start_ns,
            end_ns=own.end_ns,
            forward_ns=own.timer.elapsed_ns(),
        )

    def close(self) -> None:
        """Take the hooks off."""
        self._claim.is_over = True
        for hook in self._hooks:
            hook.remove()

    def _before(self, model: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
        own = self._own
        seen = _seen(dict(zip(self._names, args, strict=False)) | dict(kwargs), self._clock())
        if not own.begin(self._owner, self._claim):
            return
        own.seen = seen
        own.range = self.mark(phase_of_pass(seen.new, seen.cached), seen.rows * seen.new)
        own.range.__enter__()
        own.timer.start()

    def _after(self, model: Any, args: tuple[Any, ...], output: Any) -> None:
        own = self._own
        if not own.end(self._owner):
            return
        own.timer.stop()
        own.range.__exit__(None, None, None)
        own.end_ns = self._clock()
        if self._on_pass is not None and output is not None:
            self._on_pass(self.last())

    def _live(self, seen: _Seen) -> tuple[LiveRow, ...]:
        width = seen.cached + seen.new
        new, context = [seen.new] * seen.rows, [width] * seen.rows
        if seen.mask is not None and seen.mask.shape == (seen.rows, width):
            visible = seen.mask != 0
            new, context = visible[:, -seen.new :].sum(1).tolist(), visible.sum(1).tolist()
        is_decode = phase_of_pass(seen.new, seen.cached) == "decode"
        if is_decode and self.idle_tokens and seen.token_ids is not None:
            fed = seen.token_ids[:, -1].tolist()
            is_idle = [token in self.idle_tokens for token in fed]
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
