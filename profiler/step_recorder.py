"""Record the steps of an inference loop: what is called once a step, and must cost it little."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from stallscope.profiler.capture import Step
from stallscope.profiler.capture_schema import Row
from stallscope.profiler.capture_writer import CaptureWriter
from stallscope.profiler.copy_span import CopySpan
from stallscope.profiler.counts import BITS, count, stored
from stallscope.profiler.engine_sampler import UNKNOWN, EngineState, State, plain_state
from stallscope.profiler.notes import Work
from stallscope.profiler.ranges import PhaseRanges, RangeName, phase_range
from stallscope.profiler.recorder_checks import event_text
from stallscope.profiler.step_span import StepSpan
from stallscope.profiler.step_work import decode_work, mixed_work, prefill_work, warmup_work


class StepRecorder:
    """Times steps, and notes tokens, events and the engine's state.

    Values are checked at the call and put down as notes (see `notes`), of which rows are made when
    the run is over.
    """

    def __init__(self, writer: CaptureWriter, clock: Callable[[], int]) -> None:
        self.now = clock
        self._writer = writer
        self._step_ids = itertools.count()
        self._state = UNKNOWN
        self._state_changed: Callable[[State], None] = lambda _: None
        self._decode_ranges = PhaseRanges("decode")
        self._noted: BaseException | None = None

    @property
    def engine_state(self) -> EngineState:
        """Return what the engine last said about itself."""
        return EngineState(*self._state)

    def add(self, row: Row) -> None:
        """Record a row as it is."""
        self._writer.put(row)

    def step(self, row: Step) -> None:
        """Record a step that the engine timed itself; its id is one of `next_step_id`."""
        self._writer.put(("step", row))

    def prefill(self, tokens: int, *, requests: int = 1, cached_tokens: int = 0) -> StepSpan:
        """Time a prefill of `tokens` new tokens in all, over `cached_tokens` already in the cache.

        Several requests are taken to be of equal length.
        """
        work = prefill_work(tokens, requests, cached_tokens)
        return self._span(work, phase_range("prefill", work.prefill_tokens))

    def decode(self, batch: int, *, context_tokens: int | None = None) -> StepSpan:
        """Time a decode step: `context_tokens` KV entries read in all, None if not known."""
        if (
            type(batch) is int
            and type(context_tokens) is int
            and 0 < batch <= context_tokens
            and not context_tokens >> BITS
        ):  # what decode_work would return, without the call
            work: Work = ("decode", False, 0, 0, batch, context_tokens, context_tokens, batch)
        else:
            work = decode_work(batch, context_tokens)
        span = StepSpan()
        span._recorder, span._work, span._forward_ns = self, work, None
        span._range = self._decode_ranges[work[4]]
        return span

    def mixed(
        self,
        prefill_tokens: int,
        batch: int,
        *,
        prefill_requests: int = 1,
        cached_tokens: int = 0,
        context_tokens: int | None = None,
    ) -> StepSpan:
        """Time a step that prefills and decodes; `context_tokens` are those of the decode part."""
        prefill = prefill_work(
            count("prefill_tokens", prefill_tokens),
            count("prefill_requests", prefill_requests),
            cached_tokens,
        )
        work = mixed_work(prefill, decode_work(batch, context_tokens))
        tokens = work.prefill_tokens + work.decode_requests
        return self._span(work, phase_range("mixed", tokens))

    def warmup(self, tokens: int) -> StepSpan:
        """Time a pass that no figure shall contain."""
        work = warmup_work(tokens)
        return self._span(work, phase_range("warmup", work.prefill_tokens))

    def _span(self, work: Work, nvtx_range: AbstractContextManager[object]) -> StepSpan:
        span = StepSpan()
        span._recorder, span._work, span._forward_ns = self, work, None
        span._range = nvtx_range
        return span

    def step_range(self, name: RangeName, tokens: int) -> AbstractContextManager[object]:
        """Return the NVTX range alone, for an engine that fills its own rows."""
        return phase_range(name, tokens)

    def next_step_id(self) -> int:
        """Return the next step's number; steps timed by this recorder take theirs here too."""
        return next(self._step_ids)

    def event(
        self, kind: str, request: int | None = None, t_ns: int | None = None, **data: Any
    ) -> None:
        """Record something that happened, now unless `t_ns` says when; `data` must be JSON."""
        if t_ns is None:
            t_ns = self.now()
        elif type(t_ns) is not int or t_ns >> BITS:
            t_ns = stored("t_ns", t_ns)
        if request is not None and (type(request) is not int or request >> BITS):
            request = stored("request", request)
        if type(kind) is str and kind.isascii():
            for value in data.values():
                if type(value) is not int or value >> BITS:
                    break
            else:
                self._writer.put(("event", t_ns, kind, request, data))
                return
        self._writer.put(("text", t_ns, *event_text(kind, request, data)))

    def kv_traffic(
        self, appended: int, read: int, token_bytes: int, t_ns: int | None = None
    ) -> None:
        """Record what a step put into the KV cache and read from it, in tokens of `token_bytes`.

        It leaves the events kv_append and kv_read, at half the cost of two calls of `event`.
        """
        if type(appended) is not int or appended >> BITS:
            appended = count("appended", appended)
        if type(read) is not int or read >> BITS:
            read = count("read", read)
        if type(token_bytes) is not int or token_bytes >> BITS:
            token_bytes = count("token_bytes", token_bytes)
        if t_ns is None:
            t_ns = self.now()
        elif type(t_ns) is not int or t_ns >> BITS:
            t_ns = stored("t_ns", t_ns)
        self._writer.put(("kv", t_ns, appended, read, token_bytes))

    def copy(self, size_bytes: int, *, in_forward: bool = False) -> CopySpan:
        """Time a copy over a link that the loop waits for: `with recorder.copy(size): …`.

        It leaves the event copy. `in_forward` says that it lies inside `step.forward()`.
        """
        return CopySpan(self, count("size_bytes", size_bytes), in_forward=in_forward)

    def add_copy(
        self, size_bytes: int, start_ns: int, length_ns: int, *, in_forward: bool = False
    ) -> None:
        """Record such a copy that was timed otherwise."""
        self.event(
            "copy",
            t_ns=start_ns,
            bytes=count("size_bytes", size_bytes),
            length_ns=count("length_ns", length_ns),
            in_forward=int(in_forward),
        )

    def token(self, request: int, t_ns: int | None = None) -> None:
        """Record a generated token."""
        if type(request) is not int or request >> BITS:
            request = stored("request", request)
        if t_ns is None:
            t_ns = self.now()
        elif type(t_ns) is not int or t_ns >> BITS:
            t_ns = stored("t_ns", t_ns)
        self._writer.put(("token", request, t_ns))

    def set_engine_state(
        self,
        *,
        waiting: int | None = None,
        running: int | None = None,
        kv_used_bytes: int | None = None,
        kv_total_bytes: int | None = None,
    ) -> None:
        """Say how the engine stands, as a whole: what is left out is not known.

        Samples read it from then on, and steps timed here when they end.
        """
        state = (waiting, running, kv_used_bytes, kv_total_bytes)
        for value in state:
            if type(value) is not int or value >> BITS:
                state = plain_state(state)
                break
        if state != self._state:
            self._state = state
            self._state_changed(state)

    def note_error(self, error: BaseException, **data: Any) -> None:
        """Record an exception that is passing through."""
        self._noted = error
        self.event("error", type=type(error).__name__, message=str(error), **data)
