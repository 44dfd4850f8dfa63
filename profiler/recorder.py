"""Record what an inference loop does: NVTX ranges for a tracer, rows for the capture."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from os import PathLike
from types import TracebackType

from stallscope.errors import CaptureError
from stallscope.profiler.capture import DeviceSample, Event, Request
from stallscope.profiler.capture_writer import CaptureWriter
from stallscope.profiler.engine_sampler import EngineSamples
from stallscope.profiler.host import host_facts, tool_facts
from stallscope.profiler.host_fields import HOST_HZ, host_fields
from stallscope.profiler.host_sampler import HostSampler
from stallscope.profiler.notes import sample_is_plain
from stallscope.profiler.ranges import load_ranges
from stallscope.profiler.recorded_device import Device, check_device, open_device
from stallscope.profiler.recorder_checks import (
    MOST_HZ_OF_ONE,
    check_clock,
    check_hz,
    request_row,
)
from stallscope.profiler.samplers import Closing, Sample, Sampler, SamplerThread
from stallscope.profiler.spec import DeviceSpec, Subject
from stallscope.profiler.step_recorder import StepRecorder
from stallscope.profiler.subject_json import checked_subject_json
from stallscope.profiler.wrap.handshake import announce


class Recorder(StepRecorder):
    """Records a run into a capture file; a context manager, usable around anybody's own loop.

    `with recorder.prefill(512): …` and `with recorder.decode(8, context_tokens=5120): …` each leave
    an NVTX range and a step. Threads may share a recorder. `device` "cuda:0" is sampled through
    NVML; that name's figures, or a DeviceSpec given instead, stand for the device of a subject that
    names none. `sample_hz`, at most 100, may be 0: it turns the samplers off. The host is sampled
    twice a second at most.

    What is no whole number, no JSON or none of the names known raises TypeError or ValueError at
    the call and leaves the recording as it was. A child that is forked while a Recorder is open
    cannot record with it: its rows raise CaptureError, and close() leaves the file to the parent.
    """

    def __init__(
        self,
        path: str | PathLike[str],
        *,
        subject: Subject = Subject(),  # noqa: B008 (frozen)
        clock: Callable[[], int] = time.perf_counter_ns,
        device: Device = None,
        sample_hz: float = 10.0,
        force: bool = False,
    ) -> None:
        self._sample_hz = check_hz("sample_hz", sample_hz)
        check_device(device)
        check_clock(clock)
        checked_subject_json(subject)
        load_ranges()
        super().__init__(CaptureWriter(path, force=force), clock)
        self._samplers: list[SamplerThread] = []
        self._device = open_device(device)
        announce(self._writer.path, clock)
        self._describe(replace(subject, device=device) if type(device) is DeviceSpec else subject)
        self.sample(HostSampler(host_fields()), hz=min(sample_hz, HOST_HZ))
        if sample_hz > 0:
            samples = EngineSamples(clock, sample_hz)
            self._state_changed, self._writer.gather = samples.changed, samples.take
        for sampler, most_hz in self._device.samplers:
            self.sample(sampler, hz=min(sample_hz, most_hz or sample_hz))

    def request(self, row: Request) -> None:
        """Record a request; put it again as it lives on, and the last row stays."""
        self.add(request_row(row))

    def set_subject(self, subject: Subject) -> None:
        """Say what is observed, as late as after the probes."""
        if subject.device is None:
            subject = replace(subject, device=self._device.spec)
        self._writer.set_subject(subject)

    def set_meta(self, key: str, value: object) -> None:
        """Record a fact about the run; `value` must be JSON."""
        if not isinstance(key, str):
            raise TypeError(f"key must be a text, not {key!r:.40}")
        if key in ("subject", "ended"):
            raise ValueError(f"{key} is the recorder's own; set_subject and close() say it")
        self._writer.set_meta(key, value)

    def sample(self, sampler: Sampler, *, hz: float | None = None) -> None:
        """Start a sampler on a thread of its own, at the recorder's rate unless `hz` says so.

        `hz` may be up to 1000: what one sample costs is the caller's to know.
        """
        hz = self._sample_hz if hz is None else check_hz("hz", hz, MOST_HZ_OF_ONE)
        if hz > 0:
            self._samplers.append(SamplerThread(sampler, self._sampled, clock=self.now, hz=hz))
        elif isinstance(sampler, Closing):
            sampler.close()

    def _sampled(self, row: Sample | Event) -> None:
        """Put a reading down as a note, which costs less than a row; what is not plain as it is."""
        is_plain = type(row) is DeviceSample and sample_is_plain(row)
        self._writer.put(("device", row) if is_plain else row)

    def close(self) -> None:
        """Stop the samplers and close the file; what failed while writing is raised here."""
        while self._samplers:
            self._samplers.pop().stop()
        self._writer.close()

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is None:
            self.close()
            return
        with suppress(CaptureError):  # the first error is the one to see
            try:
                if error is not self._noted:
                    self.note_error(error)
            finally:
                self.close()

    def _describe(self, subject: Subject) -> None:
        self.set_meta("tool", tool_facts())
        self.set_meta("host", host_facts())
        self.set_meta("clock", {"monotonic_ns": self.now(), "unix_ns": time.time_ns()})
        if self._device.facts:
            self.set_meta("devices", dict(self._device.facts))
        self.set_subject(subject)
