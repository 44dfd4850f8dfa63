"""Record a model of transformers in somebody else's loop, `generate` included."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from stallscope.profiler.recorder import Recorder
from stallscope.runner.forward_watch import ForwardPass, ForwardWatch
from stallscope.runner.pass_row import pass_row
from stallscope.runner.step_row import Span


@dataclass(slots=True)
class _Shared:
    """The watch that all open blocks on one model and one recorder share."""

    watch: ForwardWatch
    blocks: int = 0


_SHARED: dict[tuple[int, int], _Shared] = {}
_LOCK = threading.Lock()


@contextmanager
def record_forwards(
    model: Any, recorder: Recorder, *, idle_tokens: Collection[int] = ()
) -> Iterator[None]:
    """Record each forward pass of the model in the block as a step, with its NVTX range.

    Give the pad and end-of-sequence tokens as `idle_tokens` where ended rows are fed them. What
    happens between two passes is not part of a step. Threads may run the model at once, in one
    block or in blocks of their own. Blocks on one recorder may be nested: each pass is one step,
    and a pass within another is part of the outer one's.
    """
    key = (id(model), id(recorder))  # both live while a block is open
    with _LOCK:
        shared = _SHARED.get(key)
        if shared is None:
            shared = _SHARED[key] = _Shared(_watch(model, recorder))
        shared.blocks += 1
        shared.watch.idle_tokens |= frozenset(idle_tokens)
    try:
        yield
    finally:
        with _LOCK:
            shared.blocks -= 1
            if not shared.blocks:
                del _SHARED[key]
                shared.watch.close()


def _watch(model: Any, recorder: Recorder) -> ForwardWatch:
    def write(seen: ForwardPass) -> None:
        span = Span(seen.start_ns, seen.end_ns, min(seen.forward_ns, seen.end_ns - seen.start_ns))
        number, state = recorder.next_step_id(), recorder.engine_state
        recorder.step(pass_row(number, seen, state, span, window=window))

    _check_arguments(model, recorder)
    window = sliding_window(model)
    watch = ForwardWatch(model, clock=recorder.now, on_pass=write, owner=recorder)
    watch.mark = recorder.step_range
    return watch


def sliding_window(model: Any) -> int | None:
    """Return the window within which every layer attends, if all do."""
    config = model.config.get_text_config()
    window: int | None = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"]
    return window if set(kinds) == {"sliding_attention"} else None


def _check_arguments(model: object, recorder: object) -> None:
    if not hasattr(model, "register_forward_hook") or not hasattr(
        getattr(model, "config", None), "get_text_config"
    ):
        kind = type(model).__name__
        raise TypeError(f"record_forwards takes a model of Hugging Face transformers, not a {kind}")
    if not isinstance(recorder, Recorder):
        kind = type(recorder).__name__
        raise TypeError(f"record_forwards takes a Recorder after the model, not a {kind}")
