"""One step being timed: its NVTX range, its clock, and the row it leaves."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import TYPE_CHECKING

from stallscope.errors import CaptureError
from stallscope.profiler.counts import BITS, count
from stallscope.profiler.notes import Work

if TYPE_CHECKING:
    from stallscope.profiler.step_recorder import StepRecorder


class StepSpan:
    """Entered around a step. The row is written when it ends, by an exception too."""

    __slots__ = ("_forward_ns", "_id", "_range", "_recorder", "_start_ns", "_work")

    # Set by whoever makes it, where an __init__ would cost a microsecond beside a model.
    _recorder: StepRecorder
    _work: Work
    _range: AbstractContextManager[object]
    _forward_ns: int | None
    _id: int
    _start_ns: int

    def __enter__(self) -> StepSpan:
        recorder = self._recorder
        self._id = next(recorder._step_ids)
        self._range.__enter__()
        self._start_ns = recorder.now()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        recorder = self._recorder
        end_ns = recorder.now()
        self._range.__exit__(None, None, None)
        work, state = self._work, recorder._state
        note = ("timed", self._id, self._start_ns, end_ns, self._forward_ns, work, state)
        if error is None:
            recorder._writer.put(note)
            return
        with suppress(CaptureError):  # the error that is passing is the one to see
            recorder._writer.put(note)
            recorder.note_error(error, step=self._id)

    def forward(self) -> Forward:
        """Mark the forward call: `with step.forward(): …`; several add up.

        What it encloses is taken as the device's time, so on a GPU synchronise before it ends.
        """
        return Forward(self)

    def now(self) -> int:
        return self._recorder.now()

    def add_forward(self, elapsed_ns: int) -> None:
        """Count `elapsed_ns` as forward time, as a CUDA event measured it for instance.

        Nanoseconds are whole: TypeError for a float, such as the milliseconds of
        `torch.cuda.Event.elapsed_time`; ValueError for less than none.
        """
        if type(elapsed_ns) is not int or elapsed_ns >> BITS:
            elapsed_ns = count("elapsed_ns", elapsed_ns)
        known_ns = self._forward_ns
        self._forward_ns = elapsed_ns if known_ns is None else known_ns + elapsed_ns


class Forward:
    """The forward call inside a step."""

    __slots__ = ("_span", "_start_ns")

    def __init__(self, span: StepSpan) -> None:
        self._span = span
        self._start_ns = 0

    def __enter__(self) -> None:
        self._start_ns = self._span.now()

    def __exit__(self, *_: object) -> None:
        self._span._forward_ns = (self._span._forward_ns or 0) + self._span.now() - self._start_ns
