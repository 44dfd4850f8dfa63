"""Sampler threads: at their rate, silent towards the subject, honest about what is missing."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest

from stallscope.errors import CaptureError
from stallscope.profiler.capture import DeviceSample, EngineSample, Event
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.engine_sampler import EngineSamples
from stallscope.profiler.evidence import NotObservable
from stallscope.profiler.notes import Note, NotedRow, packed, unpacked
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


def rows(notes: Iterable[Note]) -> list[NotedRow]:
    """What a file would hold of notes."""
    return list(unpacked(packed(list(notes))))


def test_the_engines_state_is_sampled_where_it_is_known() -> None:
    now = [1_000]
    samples = EngineSamples(lambda: now[0], hz=1e7)  # every 100 ns, the first at 1,100
    assert list(samples.take()) == []
    now[0] = 1_150
    samples.changed((4, None, 1 << 40, None))
    assert list(samples.take()) == []  # at 1,100 nothing was known
    now[0] = 1_310
    samples.changed((None, 7, None, None))
    now[0] = 1_450
    # As it stood at 1,200 and 1,300, and after the change at 1,400.
    assert rows(samples.take()) == [
        EngineSample(1_200, "engine", "waiting", 4.0),
        EngineSample(1_200, "engine", "kv_used_bytes", 2.0**40),
        EngineSample(1_300, "engine", "waiting", 4.0),
        EngineSample(1_300, "engine", "kv_used_bytes", 2.0**40),
        EngineSample(1_400, "engine", "running", 7.0),
    ]
    assert list(samples.take()) == []


def test_of_two_changes_between_samples_the_last_counts() -> None:
    now = [0]
    samples = EngineSamples(lambda: now[0], hz=10)
    for waiting in (1, 2, 3):
        now[0] += 20_000_000
        samples.changed((waiting, None, None, None))
    now[0] = 100_000_000
    assert rows(samples.take()) == [EngineSample(100_000_000, "engine", "waiting", 3.0)]


def test_a_long_silence_is_not_made_up_for() -> None:
    now = [0]
    samples = EngineSamples(lambda: now[0], hz=10)
    samples.changed((1, None, None, None))
    now[0] = 2_100_000_000  # 2 s after the first was due: all 21 of them
    assert len(list(samples.take())) == 21
    now[0] += 2_100_000_001  # a nanosecond more
    assert [row.t_ns for row in rows(samples.take())] == [4_200_000_001]


def test_a_clock_that_breaks_is_told_by_close(tmp_path: Path) -> None:
    readings = [1] * 4
    recording = Recorder(tmp_path / "a.sqlite", clock=lambda: readings.pop(), sample_hz=1)
    readings.clear()
    with pytest.raises(CaptureError, match="no samples any more: IndexError"):
        recording.close()


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
