"""Sampler threads: at their rate, silent towards the subject, honest about what is missing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from stallscope.errors import CaptureError
from stallscope.profiler.capture import DeviceSample, EngineSample, Event
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.engine_sampler import EngineSampler, EngineState
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.recorder import Recorder
from stallscope.profiler.samplers import Sample, SamplerThread


class Counting:
    """A sampler of one field that answers `good` times, and one that never does."""

    name = "counting"

    def __init__(self, good: int) -> None:
        self.count = 0
        self._good = good

    def probe(self) -> tuple[NotObservable, ...]:
        return (NotObservable("fan", "no fan", "buy one"),)

    def sample(self, t_ns: int) -> Iterator[DeviceSample]:
        if self.count == self._good:
            raise OSError("the device is gone")
        self.count += 1
        yield DeviceSample(t_ns, "toy", "count", float(self.count), "1")


def test_a_missing_field_and_a_broken_sampler_are_events(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    toy = Counting(good=3)
    with Recorder(path, sample_hz=0) as recording:
        recording.sample(toy, hz=200)
        deadline_s = time.monotonic() + 10
        while toy.count < 3 and time.monotonic() < deadline_s:
            time.sleep(0.01)
        time.sleep(0.05)
        with recording.decode(batch=1):  # the subject goes on
            pass
    capture = read_capture(path)
    assert [row.value for row in capture.device_samples] == [1.0, 2.0, 3.0]
    missing, gap = capture.events
    assert (missing.kind, missing.data) == (
        "not_observable",
        {"what": "fan", "reason": "no fan", "how": "buy one"},
    )
    assert (gap.kind, gap.data) == (
        "gap",
        {"what": "counting", "reason": "OSError('the device is gone')"},
    )
    assert len(capture.steps) == 1


def test_samples_come_at_the_rate_asked_for() -> None:
    rows: list[Sample | Event] = []
    toy = Counting(good=10_000)
    thread = SamplerThread(toy, rows.append, clock=time.monotonic_ns, hz=50)
    time.sleep(1.0)
    thread.stop()
    stopped_with = len(rows)
    # One event and 50 samples; on a crowded machine some come late, and none is made up for.
    assert 20 <= stopped_with <= 52
    time.sleep(0.1)
    assert len(rows) == stopped_with


def test_a_failing_file_ends_the_thread_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    asked = threading.Event()

    def put(row: Sample | Event) -> None:
        asked.set()
        raise CaptureError("no room")

    thread = SamplerThread(Counting(good=5), put, clock=time.monotonic_ns, hz=100)
    assert asked.wait(10)
    thread.stop()
    assert raised == []


def test_the_engines_state_is_sampled_where_it_is_known() -> None:
    state = EngineState(waiting=4, kv_used_bytes=1 << 40)
    sampler = EngineSampler(lambda: state)
    assert list(sampler.sample(7)) == [
        EngineSample(7, "engine", "waiting", 4.0),
        EngineSample(7, "engine", "kv_used_bytes", 2.0**40),
    ]
    assert list(EngineSampler(EngineState).sample(7)) == []


def test_a_recorder_samples_its_engine_state(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    with Recorder(path, sample_hz=100) as recording:
        recording.set_engine_state(waiting=1, running=2, kv_used_bytes=3, kv_total_bytes=4)
        time.sleep(0.3)
        recording.set_engine_state(waiting=9)
        time.sleep(0.3)
    rows = read_capture(path).engine_samples
    seen = {
        name: [row.value for row in rows if row.name == name] for name in {r.name for r in rows}
    }
    assert set(seen) == {"waiting", "running", "kv_used_bytes", "kv_total_bytes"}
    assert sorted(set(seen["waiting"])) == [1.0, 9.0]
    assert seen["waiting"] == sorted(seen["waiting"])
    assert set(seen["running"]) == {2.0}
    assert len(seen["running"]) < len(seen["waiting"])
