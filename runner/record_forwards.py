"""Record a model of transformers in somebody else's loop, `generate` included."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

from stallscope.profiler.recorder import Recorder
from stallscope.runner.forward_watch import ForwardPass, ForwardWatch
from stallscope.runner.pass_row import pass_row
from stallscope.runner.step_row import Span


@contextmanager
def record_forwards(
    model: Any, recorder: Recorder, *, idle_tokens: Collection[int] = ()
) -> Iterator[None]:
    """Record each forward pass of the model in the block as a step, with its NVTX range.

    Give the pad and end-of-sequence tokens as `idle_tokens` where ended rows are fed them. What
    happens between two passes is not part of a step.
    """

    def write(seen: ForwardPass) -> None:
        span = Span(seen.start_ns, seen.end_ns, min(seen.forward_ns, seen.end_ns - seen.start_ns))
        number, state = recorder.next_step_id(), recorder.engine_state
        recorder.add(pass_row(number, seen, state, span, window=window))

    window = sliding_window(model)
    watch = ForwardWatch(model, clock=recorder.now, idle_tokens=idle_tokens, on_pass=write)
    watch.mark = recorder.step_range
    try:
        yield
    finally:
        watch.close()


def sliding_window(model: Any) -> int | None:
    """Return the window within which every layer attends, if all do."""
    config = model.config.get_text_config()
    window: int | None = getattr(config, "sliding_window", None)
    kinds = getattr(config, "layer_types", None) or ["sliding_attention"]
    return window if set(kinds) == {"sliding_attention"} else None
