"""One step being timed: its NVTX range, its clock, and the row it leaves."""

from __future__ import annotations

from contextlib import AbstractContextManager, suppress
from types import TracebackType
from typing import TYPE_CHECKING

from stallscope.errors import CaptureError
from stallscope.profiler.capture import Step
from stallscope.profiler.counts import BITS, count
from stallscope.profiler.step_work import StepWork

if TYPE_CHECKING:
    from stallscope.profiler.recorder import Recorder


class StepSpan:
    """Entered around a step. The row is written when it ends, by an exception too."""

    __slots__ = ("_forward_ns", "_id", "_range", "_recorder", "_start_ns", "_work")

    def __init__(
        self, recorder: Recorder, work: StepWork, nvtx_range: AbstractContextManager[object]
    ) -> None:
        self._recorder = recorder
        self._work = work
        self._range = nvtx_range
        self._forward_ns: int | None = None
        self._id = 0
        self._start_ns = 0

    def __enter__(self) -> StepSpan:
        self._id = self._recorder.next_step_id()
        self._range.__enter__()
        self._start_ns = self._recorder.now()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        end_ns = self._recorder.now()
        self._range.__exit__(None, None, None)
        if error is None:
            self._recorder.add(self._row(end_ns))
            return
        with suppress(CaptureError):  # the error that is passing is the one to see
            self._recorder.add(self._row(end_ns))
            self._recorder.note_error(error, step=self._id)

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
        self._forward_ns = (self._forward_ns or 0) + elapsed_ns

    def _row(self, end_ns: int) -> Step:
        start_ns, forward_ns = self._start_ns, self._forward_ns
        host_ns = None if forward_ns is None else end_ns - start_ns - forward_ns
        timed = (self._id, 0, start_ns, end_ns, forward_ns, host_ns)
        work, engine = self._work, self._recorder.engine_state
        # In the order of Step's fields, and in a quarter of the time of Step(id=…).
        return tuple.__new__(Step, (*timed, *work[:6], *engine, *work[6:], None, None, None, None))


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
