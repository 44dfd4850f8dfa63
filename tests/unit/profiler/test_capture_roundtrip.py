"""A capture read back equals what was written, row by row, None by None."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from types import MappingProxyType

import pytest

from stallscope.profiler.capture import (
    Capture,
    Cut,
    DeviceSample,
    EngineSample,
    Event,
    KernelSummary,
    Request,
    Source,
    Step,
    Token,
)
from stallscope.profiler.capture_file import is_capture, read_capture
from stallscope.profiler.capture_writer import CaptureWriter, write_capture
from stallscope.profiler.spec import DeviceSpec, ModelSpec, RopeScaling, Subject

LATE = 2**60 + 1  # a time that a float could not hold
FULL = Step(
    *(1, 0, 100, LATE, 60, 40, "mixed", True, 1, 512, 7, 4096, 3, 8, 10, 20, 131328, 8, "seqs"),
    *(5, 17, 29),
)
BARE = Step(2, 1, 0, 5, None, None, "other", False, 0, 0, 0, *[None] * 5, None, None, None)
SUBJECT = Subject(
    model=ModelSpec(
        name="m",
        hidden_size=8,
        intermediate_size=16,
        num_layers=2,
        num_heads=2,
        num_kv_heads=1,
        head_dim=4,
        vocab_size=32,
        max_position=64,
        tied_embeddings=True,
        rope_scaling=RopeScaling("llama3", 8.0),
        eos_token_ids=(2, 3),
        warnings=("α is not modelled",),
    ),
    device=DeviceSpec("cpu", {"fp32": 3.1e11, "bf16": 1.97e12}, None, 2.95e10, "achievable", True),
    dtype="fp32",
    chunked_prefill=False,
    rate_per_s=0.1,
)
CAPTURE = Capture(
    subject=SUBJECT,
    steps=(FULL, BARE),
    requests=(
        Request(1, 5, 6, 7, 8, 512, 0, 2, 1, 9, "finished"),
        Request(2, 5, None, None, None, 512, None, 0, None, None, "waiting"),
    ),
    tokens=(Token(1, 7), Token(1, 8)),
    device_samples=(DeviceSample(3, "host", "host_rss_bytes", 1.5, "bytes"),),
    engine_samples=(EngineSample(4, "engine", "waiting", 2.0),),
    events=(
        Event(1, "admit", 1, {}),
        Event(2, "probe", None, {"bytes_per_s": 2.5, "what": ["read", None, True], "ü": {"a": 1}}),
    ),
    kernels=(
        KernelSummary("gpu0", 0, "decode", "gemv", "k", 3, 30, None),
        KernelSummary("gpu0", 0, "decode", "attention", "k", 1, 10, 4),
    ),
    sources=(Source(1, "recorder", "run.sqlite", "monotonic", -3, 0),),
    meta={"flags": {"unstable": True}, "clock": {"monotonic_ns": 0, "unix_ns": 17}},
)


def test_every_row_type_comes_back_as_it_was(tmp_path: Path) -> None:
    write_capture(tmp_path / "a.sqlite", CAPTURE)
    back = read_capture(tmp_path / "a.sqlite")
    assert set(back.meta.pop("ended")) == {"unix_ns"}
    assert back == CAPTURE
    assert type(back.steps[0].warmup) is bool


@pytest.mark.parametrize("flags", [["unstable"], [], {"unstable": True}])
def test_flags_are_a_list_of_names_or_a_mapping_by_them(tmp_path: Path, flags: object) -> None:
    write_capture(tmp_path / "a.sqlite", Capture(meta={"flags": flags}))
    assert read_capture(tmp_path / "a.sqlite").meta["flags"] == flags


def test_a_closed_capture_is_one_plain_file(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    write_capture(path, CAPTURE)
    assert [file.name for file in tmp_path.iterdir()] == ["a.sqlite"]
    head = path.read_bytes()[:100]
    assert head[18:20] == b"\x01\x01"  # not WAL any more
    assert head[68:72] == b"STLS"
    assert head[60:64] == b"\x00\x00\x00\x02"
    assert is_capture(path)


def test_the_columns_are_those_of_the_design(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    write_capture(path, Capture())
    db = sqlite3.connect(path)
    columns = {
        name: " ".join(row[1] for row in db.execute(f"PRAGMA table_info({name})"))
        for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type='table'").fetchall()
    }
    db.close()
    assert columns == {
        "meta": "key value_json",
        "sources": "id kind path clock offset_ns offset_error_ns",
        "steps": (
            "id rank start_ns end_ns device_ns host_ns phase warmup prefill_requests "
            "prefill_tokens decode_requests context_tokens waiting running kv_used_bytes "
            "kv_total_bytes attention_pairs logit_rows blocked_by padded_tokens "
            "padded_context_tokens padded_pairs"
        ),
        "requests": (
            "id arrival_ns admitted_ns first_token_ns end_ns input_tokens cached_tokens "
            "output_tokens preemptions preempted_ns status"
        ),
        "tokens": "request t_ns",
        "device_samples": "t_ns device name value unit",
        "engine_samples": "t_ns engine name value",
        "events": "t_ns kind request data_json",
        "kernel_summary": "device rank phase class name count busy_ns exposed_ns",
    }


def test_rows_come_back_in_order_of_time_and_requests_in_order_of_id(tmp_path: Path) -> None:
    writer = CaptureWriter(tmp_path / "a.sqlite")
    for t_ns in (9, 3, 5):
        writer.put(Token(t_ns, t_ns))
        writer.put(Event(t_ns, "admit", t_ns, {}))
        writer.put(Request(t_ns, 0, None, None, None, 1, None, 0, None, None, "waiting"))
    writer.close()
    back = read_capture(tmp_path / "a.sqlite")
    assert [row.t_ns for row in back.tokens] == [3, 5, 9]
    assert [row.t_ns for row in back.events] == [3, 5, 9]
    assert [row.id for row in back.requests] == [3, 5, 9]


def test_a_request_put_again_replaces_the_former(tmp_path: Path) -> None:
    waiting = Request(7, 0, None, None, None, 4, None, 0, None, None, "waiting")
    finished = Request(7, 0, 1, 2, 3, 4, 0, 2, 0, 0, "finished")
    writer = CaptureWriter(tmp_path / "a.sqlite")
    writer.put(waiting)
    writer.put(finished)
    writer.close()
    assert read_capture(tmp_path / "a.sqlite").requests == (finished,)


def test_an_events_data_may_be_any_mapping(tmp_path: Path) -> None:
    event = Event(1, "probe", None, MappingProxyType({"a": 1}))
    write_capture(tmp_path / "a.sqlite", Capture(events=(event,)))
    assert read_capture(tmp_path / "a.sqlite").events == (Event(1, "probe", None, {"a": 1}),)


def test_a_cut_capture_stays_cut_when_written_again(tmp_path: Path) -> None:
    cut = Capture(tokens=(Token(1, 2_500_000_000), Token(1, 5_000_000_000)), cut=Cut(0, ""))
    write_capture(tmp_path / "a.sqlite", cut)
    back = read_capture(tmp_path / "a.sqlite")
    assert back.cut == Cut(5_000_000_000, "cut 2.5 s after its first row: the run did not end")


def test_the_columns_of_a_later_format_are_none_in_an_older_file(tmp_path: Path) -> None:
    path = tmp_path / "a.sqlite"
    write_capture(path, CAPTURE)
    db = sqlite3.connect(path)
    db.execute("ALTER TABLE steps DROP COLUMN blocked_by")
    db.close()
    assert [step.blocked_by for step in read_capture(path).steps] == [None, None]


@pytest.mark.parametrize("name", ["run #1?.sqlite", "100%.db", "größe"])
def test_odd_file_names_are_read(tmp_path: Path, name: str) -> None:
    write_capture(tmp_path / name, CAPTURE)
    assert read_capture(tmp_path / name).steps == CAPTURE.steps
