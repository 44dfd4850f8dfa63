"""The Recorder: exact rows on a clock that stands still, and whole ones from many threads."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from stallscope import __version__
from stallscope.errors import CaptureError
from stallscope.profiler.capture import DeviceSample, EngineSample, Event, Request, Step, Token
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.recorder import Recorder
from stallscope.profiler.spec import DeviceSpec, Subject


class Clock:
    """A clock that moves only when it is told to."""

    def __init__(self) -> None:
        self.t_ns = 1_000

    def __call__(self) -> int:
        return self.t_ns

    def pass_ns(self, elapsed_ns: int) -> None:
        self.t_ns += elapsed_ns


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


def recorder(path: Path, clock: Clock) -> Recorder:
    return Recorder(path, clock=clock, sample_hz=0)


def test_a_step_is_split_at_its_forward_calls(path: Path, clock: Clock) -> None:
    with recorder(path, clock) as recording:
        recording.set_engine_state(waiting=2, running=3, kv_used_bytes=40, kv_total_bytes=80)
        with recording.prefill(tokens=512, cached_tokens=100) as step:
            clock.pass_ns(3_000_000)
            with step.forward():
                clock.pass_ns(20_000_000)
            clock.pass_ns(500)
            with step.forward():
                clock.pass_ns(7)
    assert read_capture(path).steps == (
        Step(
            id=0,
            rank=0,
            start_ns=1_000,
            end_ns=23_001_507,
            device_ns=20_000_007,
            host_ns=3_000_500,
            phase="prefill",
            warmup=False,
            prefill_requests=1,
            prefill_tokens=512,
            decode_requests=0,
            context_tokens=612,
            waiting=2,
            running=3,
            kv_used_bytes=40,
            kv_total_bytes=80,
            attention_pairs=182_528,  # 512 × 100 + 512 × 513 / 2
            logit_rows=1,
            blocked_by=None,
        ),
    )


def test_what_was_not_said_is_none(path: Path, clock: Clock) -> None:
    with recorder(path, clock) as recording, recording.decode(batch=8):
        clock.pass_ns(5)
    (step,) = read_capture(path).steps
    unknown = (step.device_ns, step.host_ns, step.context_tokens, step.attention_pairs)
    assert unknown == (None,) * 4
    assert (step.waiting, step.running, step.kv_used_bytes, step.kv_total_bytes) == (None,) * 4


def test_each_kind_of_step_has_its_phase(path: Path, clock: Clock) -> None:
    with recorder(path, clock) as recording:
        with recording.warmup(tokens=16):
            pass
        with recording.prefill(tokens=8, requests=2):
            pass
        with recording.mixed(4, 3, context_tokens=30):
            pass
        with recording.decode(batch=5, context_tokens=50):
            pass
    steps = read_capture(path).steps
    assert [(step.id, step.phase, step.warmup) for step in steps] == [
        (0, "other", True),
        (1, "prefill", False),
        (2, "mixed", False),
        (3, "decode", False),
    ]
    assert [step.context_tokens for step in steps] == [None, 8, 34, 50]
    assert [step.logit_rows for step in steps] == [None, 2, 4, 5]


def test_an_exception_passes_and_leaves_its_step_and_one_event(path: Path, clock: Clock) -> None:
    def fail() -> None:
        with (
            recorder(path, clock) as recording,
            recording.decode(batch=1) as step,
            step.forward(),
        ):
            clock.pass_ns(4)
            raise ZeroDivisionError("of all things")

    with pytest.raises(ZeroDivisionError, match="of all things"):
        fail()
    capture = read_capture(path)
    assert [(step.start_ns, step.end_ns, step.device_ns) for step in capture.steps] == [
        (1_000, 1_004, 4)
    ]
    data = {"type": "ZeroDivisionError", "message": "of all things", "step": 0}
    assert capture.events == (Event(1_004, "error", None, data),)
    assert capture.cut is None


def test_an_exception_between_steps_is_an_event_too(path: Path, clock: Clock) -> None:
    with pytest.raises(KeyError), recorder(path, clock):
        raise KeyError("x")
    (event,) = read_capture(path).events
    assert event.data == {"type": "KeyError", "message": "'x'"}


def test_rows_of_the_engines_own(path: Path, clock: Clock) -> None:
    request = Request(3, 1, 2, None, None, 8, 0, 0, 0, 0, "running")
    with recorder(path, clock) as recording:
        assert recording.next_step_id() == 0
        with recording.step_range("decode", 4):
            recording.request(request)
        recording.token(3, 70)
        clock.pass_ns(11)
        recording.token(3)
        recording.event("kv_alloc", 3, blocks=2, bytes=98_304)
        recording.event("preempt", t_ns=17)
        recording.add(EngineSample(5, "engine", "waiting", 1.0))
    capture = read_capture(path)
    assert capture.requests == (request,)
    assert capture.tokens == (Token(3, 70), Token(3, 1_011))
    assert capture.events == (
        Event(17, "preempt", None, {}),
        Event(1_011, "kv_alloc", 3, {"blocks": 2, "bytes": 98_304}),
    )
    assert capture.engine_samples == (EngineSample(5, "engine", "waiting", 1.0),)
    assert capture.steps == ()


def test_the_subject_may_come_late_and_meta_says_who_recorded(path: Path, clock: Clock) -> None:
    device = DeviceSpec("cpu", {"fp32": 3e11}, None, 3e10, "achievable", True)
    with Recorder(path, clock=clock, device=device, sample_hz=0) as recording:
        recording.set_meta("flags", {"unstable": True})
        clock.pass_ns(9)
    early = read_capture(path)
    assert early.subject == Subject(device=device)
    assert early.meta["flags"] == {"unstable": True}
    assert early.meta["tool"] == {"name": "stallscope", "version": __version__}
    assert early.meta["clock"]["monotonic_ns"] == 1_000
    with Recorder(path, clock=clock, sample_hz=0, force=True) as recording:
        recording.set_subject(Subject(engine="mine"))
    assert read_capture(path).subject == Subject(engine="mine")


def test_many_threads_record_at_once(path: Path) -> None:
    barrier = threading.Barrier(4)

    def work(recording: Recorder, number: int) -> None:
        barrier.wait()
        for turn in range(250):
            with (
                recording.prefill(tokens=number + 1) as outer,
                outer.forward(),
                recording.decode(batch=number + 1),
            ):
                recording.token(number, turn)

    with Recorder(path, sample_hz=100) as recording:
        threads = [threading.Thread(target=work, args=(recording, n)) for n in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    capture = read_capture(path)
    assert [step.id for step in capture.steps] == list(range(4 * 250 * 2))
    for number in range(4):
        prefills = [step for step in capture.steps if step.prefill_tokens == number + 1]
        assert len(prefills) == 250
        assert all(0 <= (step.host_ns or 0) < step.end_ns - step.start_ns for step in prefills)
        turns = [token.t_ns for token in capture.tokens if token.request == number]
        assert turns == list(range(250))
    assert [event for event in capture.events if event.kind != "not_observable"] == []


def test_nothing_is_recorded_after_close(path: Path, clock: Clock) -> None:
    recording = recorder(path, clock)
    recording.close()
    recording.close()
    with pytest.raises(CaptureError, match="is closed"):
        recording.token(1)


WRONG = DeviceSample(1, "gpu", "power", 2**63, "mW")  # a row of a sampler's own


def test_a_failing_file_does_not_hide_the_runs_own_error(path: Path, clock: Clock) -> None:
    def fail() -> None:
        with recorder(path, clock) as recording:
            recording.add(WRONG)
            with recording.decode(batch=1):
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()


def test_a_failing_file_is_told_at_the_end_of_a_good_run(path: Path, clock: Clock) -> None:
    with pytest.raises(CaptureError, match="int too large"), recorder(path, clock) as recording:
        recording.add(WRONG)


def test_a_negative_rate_is_refused_before_the_file_is_made(path: Path) -> None:
    with pytest.raises(ValueError, match="sample_hz=-1"):
        Recorder(path, sample_hz=-1)
    assert not path.exists()


def test_a_copy_that_the_loop_waits_for(path: Path, clock: Clock) -> None:
    with recorder(path, clock) as recording:
        with recording.copy(4096):
            clock.pass_ns(700)
        with recording.copy(8, in_forward=True):
            clock.pass_ns(30)
        recording.add_copy(9, start_ns=5, length_ns=6)
        with pytest.raises(OSError, match="link"), recording.copy(1):
            raise OSError("the link is down")
        with pytest.raises(TypeError, match="size_bytes"):
            recording.copy(1.5)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="length_ns"):
            recording.add_copy(1, start_ns=5, length_ns=-1)
    events = [e for e in read_capture(path).events if e.kind == "copy"]
    assert [(e.t_ns, dict(e.data)) for e in events] == [
        (5, {"bytes": 9, "length_ns": 6, "in_forward": 0}),
        (1_000, {"bytes": 4096, "length_ns": 700, "in_forward": 0}),
        (1_700, {"bytes": 8, "length_ns": 30, "in_forward": 1}),
    ]
