"""A copy over a link, while the loop waits for it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stallscope.profiler.step_recorder import StepRecorder


class CopySpan:
    """Entered around a copy and the wait for it; one that fails leaves nothing."""

    __slots__ = ("_in_forward", "_recorder", "_size_bytes", "_start_ns")

    def __init__(self, recorder: StepRecorder, size_bytes: int, *, in_forward: bool) -> None:
        self._recorder = recorder
        self._size_bytes = size_bytes
        self._in_forward = in_forward
        self._start_ns = 0

    def __enter__(self) -> None:
        self._start_ns = self._recorder.now()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            return
        length_ns = self._recorder.now() - self._start_ns
        self._recorder.add_copy(
            self._size_bytes, self._start_ns, length_ns, in_forward=self._in_forward
        )
