"""Sample counters on a thread of their own, without ever raising into what is observed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Protocol, runtime_checkable

from stallscope.errors import CaptureError
from stallscope.profiler.capture import DeviceSample, EngineSample, Event
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.stop_signal import StopSignal

Sample = DeviceSample | EngineSample

# A driver that lost its device may never return from a call; then the thread is left behind.
STOP_WITHIN_S = 5.0


class SamplingStopped(Exception):
    """What is sampled is gone for good; the message says why."""


class Sampler(Protocol):
    """Something that reads counters: of the host, the engine, a GPU."""

    @property
    def name(self) -> str:
        """Name it in events and as a thread."""

    def probe(self) -> Iterable[NotObservable]:
        """Try each field once; keep those that answer and return the others with the reason."""

    def sample(self, t_ns: int) -> Iterable[Sample | Event]:
        """Read the fields that answered; events are what happened to them."""


@runtime_checkable
class Closing(Protocol):
    """A sampler that holds something open."""

    def close(self) -> tuple[NotObservable, ...]:
        """Let go of it; return the fields that answered the probe and yet never had a value."""


class SamplerThread:
    """Runs one sampler `hz` times a second until stopped.

    A field that does not answer becomes a `not_observable` event; a sampler that breaks leaves a
    `gap` event and stops. One that holds something open is closed on its thread at the end.
    """

    def __init__(
        self,
        sampler: Sampler,
        put: Callable[[Sample | Event], None],
        *,
        clock: Callable[[], int],
        hz: float,
    ) -> None:
        self._sampler = sampler
        self._put = put
        self._clock = clock
        self._period_s = 1 / hz
        self._stop = StopSignal()
        name = f"stallscope-{sampler.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Let the thread end and wait for it, but not for ever."""
        self._stop.set()
        self._thread.join(STOP_WITHIN_S)
        if self._thread.is_alive():
            with suppress(CaptureError):
                self._event("gap", what=self._sampler.name, reason="it does not answer any more")

    def _run(self) -> None:
        with suppress(CaptureError):  # the file failed; whoever puts or closes next is told
            try:
                self._note(self._sampler.probe())
                self._sample_until_stopped()
            except CaptureError:
                raise
            except SamplingStopped as stopped:
                self._event("gap", what=self._sampler.name, reason=str(stopped))
            except Exception as error:
                self._event("gap", what=self._sampler.name, reason=repr(error))
            finally:
                if isinstance(self._sampler, Closing):
                    self._note(self._sampler.close())

    def _note(self, fields: Iterable[NotObservable]) -> None:
        for missing in fields:
            self._event("not_observable", what=missing.what, reason=missing.reason, how=missing.how)

    def _sample_until_stopped(self) -> None:
        due_s = time.monotonic() + self._period_s
        while not self._stop.wait(due_s - time.monotonic()):
            for row in self._sampler.sample(self._clock()):
                self._put(row)
            # A late sample is not made up for by a burst.
            due_s = max(due_s + self._period_s, time.monotonic())

    def _event(self, kind: str, **data: str) -> None:
        self._put(Event(self._clock(), kind, None, data))
