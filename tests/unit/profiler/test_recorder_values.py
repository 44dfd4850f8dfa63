"""A wrong value is refused by name where it is given; what was recorded before and after stays."""

from __future__ import annotations

import enum
import math
import time
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stallscope.errors import CaptureError
from stallscope.profiler.capture import DeviceSample, EngineSample, Event, Request, Step, Token
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.capture_writer import CaptureWriter
from stallscope.profiler.recorder import Recorder
from stallscope.profiler.spec import Subject


class Size(enum.IntEnum):
    EIGHT = 8


class Unspeakable:
    def __index__(self) -> int:
        raise TypeError("no")


NO_COUNTS = [8.0, math.nan, np.float64(8), Decimal(8), "8", True, None, object()]
NO_COUNTS += [np.bool_(True), [8], Unspeakable(), np.array([1, 2])]
TOO_MUCH = [2**70, -1, 2**61, 10**5000, np.int64(-3)]
EIGHTS = [8, np.int64(8), np.uint8(8), Size.EIGHT, np.array(8)]

# Each call takes one value as the argument named.
CALLS: dict[str, Callable[[Recorder, Any], object]] = {
    "tokens": lambda r, v: r.prefill(v).__enter__(),
    "requests": lambda r, v: r.prefill(64, requests=v).__enter__(),
    "cached_tokens": lambda r, v: r.prefill(64, cached_tokens=v).__enter__(),
    "batch": lambda r, v: r.decode(v).__enter__(),
    "context_tokens": lambda r, v: r.decode(2, context_tokens=v).__enter__(),
    "prefill_tokens": lambda r, v: r.mixed(v, 2).__enter__(),
    "prefill_requests": lambda r, v: r.mixed(64, 2, prefill_requests=v).__enter__(),
    "tokens ": lambda r, v: r.warmup(v).__enter__(),
    "waiting": lambda r, v: r.set_engine_state(waiting=v),
    "running": lambda r, v: r.set_engine_state(running=v),
    "kv_used_bytes": lambda r, v: r.set_engine_state(kv_used_bytes=v),
    "kv_total_bytes": lambda r, v: r.set_engine_state(kv_total_bytes=v),
    "elapsed_ns": lambda r, v: r.decode(1).add_forward(v),
    "appended": lambda r, v: r.kv_traffic(v, 2, 3),
    "read": lambda r, v: r.kv_traffic(1, v, 3),
    "token_bytes": lambda r, v: r.kv_traffic(1, 2, v),
}
MAY_BE_NONE = {"context_tokens", "waiting", "running", "kv_used_bytes", "kv_total_bytes"}
# Ids and times may be below zero.
NUMBERS: dict[str, Callable[[Recorder, Any], object]] = {
    "request": lambda r, v: r.token(v),
    "t_ns": lambda r, v: r.token(1, v),
    "request ": lambda r, v: r.event("x", v),
    "t_ns ": lambda r, v: r.event("x", t_ns=v),
    "t_ns  ": lambda r, v: r.kv_traffic(1, 2, 3, v),
}


def name_of(argument: str) -> str:
    return rf"^{argument.strip()} must "


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run.sqlite"


@pytest.mark.parametrize("argument", CALLS)
def test_no_count_is_refused_by_name(path: Path, argument: str) -> None:
    with Recorder(path, sample_hz=0) as recording:
        recording.token(1, 1)
        for value in NO_COUNTS:
            if value is None and argument in MAY_BE_NONE:
                continue
            with pytest.raises(TypeError, match=name_of(argument)):
                CALLS[argument](recording, value)
        for value in TOO_MUCH:
            with pytest.raises(ValueError, match=name_of(argument)):
                CALLS[argument](recording, value)
        recording.token(2, 2)
    capture = read_capture(path)
    assert capture.tokens == (Token(1, 1), Token(2, 2))
    assert (capture.steps, capture.cut) == ((), None)


@pytest.mark.parametrize("argument", NUMBERS)
def test_no_number_is_refused_by_name(path: Path, argument: str) -> None:
    with Recorder(path, sample_hz=0) as recording:
        for value in NO_COUNTS:
            if value is None and argument != "request":
                continue
            with pytest.raises(TypeError, match=name_of(argument)):
                NUMBERS[argument](recording, value)
        for value in (2**63, -(2**63) - 1, 10**5000):
            with pytest.raises(ValueError, match=name_of(argument)):
                NUMBERS[argument](recording, value)
        recording.token(-(2**63), 2**63 - 1)
    capture = read_capture(path)
    assert (capture.tokens, capture.events) == ((Token(-(2**63), 2**63 - 1),), ())


@pytest.mark.parametrize("value", EIGHTS)
def test_whole_numbers_of_any_library_are_taken(path: Path, value: Any) -> None:
    with Recorder(path, sample_hz=0) as recording:
        recording.set_engine_state(waiting=value, running=value, kv_used_bytes=value)
        with recording.prefill(value, requests=value, cached_tokens=value) as step:
            step.add_forward(value)
        with recording.decode(value, context_tokens=value):
            pass
        with recording.mixed(value, value, prefill_requests=value, context_tokens=value):
            pass
        with recording.warmup(value):
            pass
        recording.token(value, value)
        recording.event("x", value, value)
    capture = read_capture(path)
    shapes = [
        (s.prefill_requests, s.prefill_tokens, s.decode_requests, s.context_tokens)
        for s in capture.steps
    ]
    # 8 requests of 1 token each, 1 cached: 8 + 8 read; a mixed step's prefill has none cached.
    assert shapes == [(8, 8, 0, 16), (0, 0, 8, 8), (8, 8, 8, 16), (0, 8, 0, None)]
    assert capture.steps[0].device_ns == 8
    assert [s.kv_used_bytes for s in capture.steps] == [8] * 4
    assert capture.tokens == (Token(8, 8),)
    assert capture.events == (Event(8, "x", 8, {}),)


def test_what_torch_calls_a_number(path: Path) -> None:
    import torch

    with Recorder(path, sample_hz=0) as recording:
        for call in (*CALLS.values(), *NUMBERS.values()):
            call(recording, torch.tensor(8))
            with pytest.raises(TypeError, match="must be a whole number, not tensor"):
                call(recording, torch.tensor(8.0))
        with pytest.raises(TypeError, match="^bad of the event load is not JSON"):
            recording.event("load", bad=torch.tensor(3))
    with pytest.raises(TypeError, match=r"DeviceSpec or None, not device\(type='cuda', index=0\)"):
        Recorder(path, device=torch.device("cuda:0"))  # type: ignore[arg-type]
    # NUMBERS: two tokens and two events, all in plain ints; of the KV cache's traffic four calls.
    capture = read_capture(path)
    assert (len(capture.tokens), len(capture.events)) == (2, 2 + 4 * 2)


def test_more_pairs_than_fit_are_refused_though_each_count_fits(path: Path) -> None:
    with Recorder(path, sample_hz=0) as recording:
        with pytest.raises(ValueError, match="no prefill attends to .* tokens=1099511627776"):
            recording.prefill(2**40)
        with recording.mixed(2**29, 1, context_tokens=2**60):
            pass
    (step,) = read_capture(path).steps
    assert step.context_tokens == 2**60 + 2**29


LOOP: dict[str, Any] = {}
LOOP["self"] = LOOP
DEEP: list[Any] = []
for _ in range(3000):
    DEEP = [DEEP]


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (object(), TypeError),
        (np.int64(3), TypeError),
        ([1, {"a": object()}], TypeError),
        (LOOP, ValueError),
        (DEEP, ValueError),
    ],
)
def test_data_that_are_no_json_are_refused_by_name(
    path: Path, value: object, error: type[Exception]
) -> None:
    with Recorder(path, sample_hz=0) as recording:
        recording.event("before", t_ns=1)
        with pytest.raises(error, match="^bad of the event load is not JSON: "):
            recording.event("load", good=1, bad=value)
        recording.event("after", t_ns=2)
    events = read_capture(path).events
    assert [event.kind for event in events] == ["before", "after"]


def test_data_of_every_json_kind_come_back(path: Path) -> None:
    data = {
        "whole": 2**70,
        "part": 0.5,
        "text": "größer \udcff",
        "yes": True,
        "nothing": None,
        "many": [1, [2, {"a": []}]],
        "nested": {"b": 2**70},
    }
    with Recorder(path, sample_hz=0) as recording:
        recording.event("all", t_ns=1, **data)
        recording.event("plain", t_ns=2, whole=2**70, text="\udcff", nan=math.nan)
        brackets = [[] for _ in range(1000)]
        recording.event("wide", t_ns=3, many=brackets)
    events = read_capture(path).events
    assert events[0].data == data
    assert events[1].data["whole"] == 2**70
    assert events[2].data == {"many": brackets}


def test_data_are_taken_as_they_are_at_the_call(path: Path) -> None:
    blocks = [1]
    with Recorder(path, sample_hz=0) as recording:
        recording.event("alloc", t_ns=1, blocks=blocks)
        blocks.append(2)
    assert read_capture(path).events == (Event(1, "alloc", None, {"blocks": [1]}),)


@pytest.mark.parametrize("kind", [None, 3, b"x"])
def test_a_kind_is_a_text(path: Path, kind: Any) -> None:
    with Recorder(path, sample_hz=0) as recording:
        with pytest.raises(TypeError, match="^kind must be a text"):
            recording.event(kind)
        with pytest.raises(ValueError, match="^kind must be a text that UTF-8 can hold"):
            recording.event("\udcff")
        recording.event("größer", t_ns=1)
    assert [event.kind for event in read_capture(path).events] == ["größer"]


def test_a_request_is_checked_field_by_field(path: Path) -> None:
    whole = Request(3, 1, 2, None, None, 8, 0, 0, 0, 0, "running")
    with Recorder(path, sample_hz=0) as recording:
        for name in Request._fields:
            wrong: Any = 3 if name == "status" else 2.5
            with pytest.raises(TypeError, match=rf"^{name} must be"):
                recording.request(whole._replace(**{name: wrong}))
        with pytest.raises(TypeError, match="^arrival_ns must be"):
            recording.request(whole._replace(arrival_ns=None))  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="a row of type Request"):
            recording.request(tuple(whole))  # type: ignore[arg-type]
        recording.request(whole._replace(input_tokens=np.int64(8)))  # type: ignore[arg-type]
    assert read_capture(path).requests == (whole,)


def test_a_subject_that_could_not_be_read_again_is_refused(path: Path) -> None:
    wrong = Subject(num_devices=np.int64(2))  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"subject.num_devices cannot be np.int64\(2\)"):
        Recorder(path, subject=wrong)
    with pytest.raises(TypeError, match="a subject is a Subject, not 'llama'"):
        Recorder(path, subject="llama")  # type: ignore[arg-type]
    assert not path.exists()
    with (
        Recorder(path, sample_hz=0, subject=Subject(engine="mine")) as recording,
        pytest.raises(ValueError, match=r"subject.num_devices cannot be"),
    ):
        recording.set_subject(wrong)
    assert read_capture(path).subject == Subject(engine="mine")


def test_meta_of_the_recorders_own_is_not_overwritten(path: Path) -> None:
    with Recorder(path, sample_hz=0) as recording:
        for key in ("subject", "ended"):
            with pytest.raises(ValueError, match=f"^{key} is the recorder's own"):
                recording.set_meta(key, 3)
        with pytest.raises(TypeError, match="^key must be a text"):
            recording.set_meta(3, "x")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="not JSON serializable"):
            recording.set_meta("x", object())
    assert read_capture(path).cut is None


@pytest.mark.parametrize("hz", [math.nan, math.inf, -math.inf, 100.1, 10**400, -1])
def test_a_rate_out_of_bounds_names_the_limit(path: Path, hz: float) -> None:
    with pytest.raises(ValueError, match=r"^samples a second are from 0 \(none\) to 100, not "):
        Recorder(path, sample_hz=hz)
    assert not path.exists()


def test_a_sampler_of_the_callers_own_may_be_faster(path: Path) -> None:
    class Silent:
        name = "silent"

        def probe(self) -> tuple[()]:
            return ()

        def sample(self, t_ns: int) -> tuple[()]:
            return ()

    with Recorder(path, sample_hz=0) as recording:
        recording.sample(Silent(), hz=1000)
        for hz in (1000.5, math.nan, math.inf):
            with pytest.raises(ValueError, match=rf"to 1000, not hz={hz:g}$"):
                recording.sample(Silent(), hz=hz)
        with pytest.raises(TypeError, match="^hz must be a number"):
            recording.sample(Silent(), hz="9")  # type: ignore[arg-type]


@pytest.mark.parametrize("hz", ["10", None, True, [1], 1j])
def test_a_rate_is_a_number(path: Path, hz: Any) -> None:
    with pytest.raises(TypeError, match="^sample_hz must be a number of samples a second"):
        Recorder(path, sample_hz=hz)
    assert not path.exists()


def test_the_slowest_rate_takes_no_sample(path: Path) -> None:
    with Recorder(path, sample_hz=5e-324):
        time.sleep(0.05)
    capture = read_capture(path)
    assert capture.device_samples == ()
    assert [event for event in capture.events if event.kind == "gap"] == []


@pytest.mark.parametrize("device", [0, 1.5, ["cuda:0"], b"cpu"])
def test_a_device_is_a_name_or_a_spec(path: Path, device: Any) -> None:
    with pytest.raises(TypeError, match='^device must be a name such as "cuda:0", a DeviceSpec or'):
        Recorder(path, device=device)
    assert not path.exists()


@pytest.mark.parametrize(
    ("device", "hint"),
    [
        ("CUDA:0", '; write it "cuda:0"'),
        ("Cuda", '; write it "cuda"'),
        (" cpu", '; write it "cpu"'),
        ("gpu7", ""),
    ],
)
def test_a_device_of_another_spelling_is_told_how(path: Path, device: str, hint: str) -> None:
    with pytest.raises(ValueError, match=f'a device is "cpu", .* not {device!r}{hint}$'):
        Recorder(path, device=device)
    assert not path.exists()


@pytest.mark.parametrize("clock", [time.time, 3, lambda: np.int64(3)])
def test_a_clock_tells_whole_nanoseconds(path: Path, clock: Any) -> None:
    with pytest.raises(TypeError, match="^clock must return whole nanoseconds"):
        Recorder(path, clock=clock)
    assert not path.exists()


STEP = Step(0, 0, 1, 2, None, None, "decode", False, 0, 0, 1, *[None] * 8)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (Token(2**63, 1), "int too large"),
        (Token(None, 1), "NOT NULL constraint failed: tokens.request"),  # type: ignore[arg-type]
        (Event(1, "probe", None, {"what": object()}), "not JSON serializable"),
        (DeviceSample(1, "d", "n", math.nan, "W"), "NOT NULL constraint failed"),
        ("no row", "KeyError"),
    ],
)
def test_one_wrong_row_takes_no_other_with_it(tmp_path: Path, wrong: Any, reason: str) -> None:
    path = tmp_path / "a.sqlite"
    writer = CaptureWriter(path)
    writer.set_subject(Subject(engine="mine"))
    writer.put(Token(1, 1))
    writer.put(STEP)
    writer.put(wrong)
    writer.put(EngineSample(1, "e", "n", 1.0))
    writer.put(Token(2, 2))
    with pytest.raises(CaptureError, match=f"a row cannot be written: .*{reason}"):
        writer.close()
    capture = read_capture(path)
    assert capture.tokens == (Token(1, 1), Token(2, 2))
    assert capture.steps == (STEP,)
    assert capture.engine_samples == (EngineSample(1, "e", "n", 1.0),)
    assert capture.subject == Subject(engine="mine")
    assert [file.name for file in tmp_path.iterdir()] == ["a.sqlite"]
