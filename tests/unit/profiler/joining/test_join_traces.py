"""A trace of a few seconds beside a server's log: its tool told the wall's time, or did not."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import pytest
from joined import offsets_s, read_together
from scripted_load import LOAD, Load, gpu_csv, server_log

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, DeviceSample, Event, Step
from stallscope.profiler.file_kinds import InputKind
from stallscope.profiler.joining.join import Given, join
from stallscope.profiler.spec import DeviceSpec, Subject
from stallscope.profiler.telemetry.reader import read_telemetry

S = 1_000_000_000
STEADY = Load(((-10.0, 700.0, 8),), 600.0)


def kineto(*, at_s: float | None, seconds: int = 4) -> str:
    """Return a trace of one kernel of 20 ms each 50 ms; `at_s` is when it began after noon."""
    args = {"device": 0, "stream": 7, "correlation": 1}
    events = [
        {"ph": "X", "cat": "kernel", "name": "volta_sgemm", "ts": 50_000 * i, "dur": 20_000}
        | {"args": args}
        for i in range(20 * seconds)
    ]
    base = {} if at_s is None else {"baseTimeNanoseconds": unix_ns(at_s)}
    devices = [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}]
    head = {"schemaVersion": 1, "deviceProperties": devices, **base}
    return json.dumps({**head, "traceEvents": events})


def unix_ns(second: float) -> int:
    at = STEADY.start + timedelta(seconds=second)
    return round(at.timestamp() * 1e6) * 1000


def test_a_trace_that_tells_the_wall_time_is_joined(tmp_path: Path) -> None:
    files = {"server.log": server_log(STEADY), "trace.json": kineto(at_s=123.0)}
    capture = read_together(tmp_path, files)
    assert [s.kind for s in capture.sources] == ["vllm log", "kineto"]
    assert offsets_s(capture)[1] == pytest.approx(123.0)
    assert sum(k.launches for k in capture.kernels) == 80
    assert {s.name for s in capture.engine_samples} >= {"running", "waiting"}


def test_a_trace_without_wall_time_is_refused(tmp_path: Path) -> None:
    files = {"server.log": server_log(STEADY), "trace.json": kineto(at_s=None)}
    with pytest.raises(InputError) as caught:
        read_together(tmp_path, files)
    assert "share no begin or end of work, and one of them tells no wall time" in str(caught.value)
    assert "--offset trace.json=±SECONDS" in str(caught.value)
    # It began 123 s after the log's first line.
    assert offsets_s(read_together(tmp_path, files, {"trace.json": 123.0}))[1] == pytest.approx(123)


def test_a_trace_of_another_hour_is_refused(tmp_path: Path) -> None:
    # The log's zone may be any, but at ten minutes after its end nothing overlaps in one.
    files = {"server.log": server_log(STEADY), "trace.json": kineto(at_s=1210.0)}
    with pytest.raises(InputError, match="do not overlap in time"):
        read_together(tmp_path, files)


def test_two_ranks_and_a_log(tmp_path: Path) -> None:
    ranks = {}
    for rank in range(2):
        trace = json.loads(kineto(at_s=123.0 + rank / 10))
        trace["traceEvents"][0]["dur"] += rank  # ranks are never alike
        trace["distributedInfo"] = {"rank": rank, "world_size": 2}
        ranks[f"rank{rank}.json"] = json.dumps(trace)
    capture = read_together(tmp_path, {"server.log": server_log(STEADY), **ranks})
    assert {k.rank for k in capture.kernels} == {0, 1}
    assert offsets_s(capture)[1:] == pytest.approx([123.0, 123.1])


def test_a_capture_of_ones_own_lends_its_clock(tmp_path: Path) -> None:
    """Its monotonic clock showed 9,000 s at noon, and its steps filled the bursts of the load."""
    steps = tuple(
        step(i, round((9000 + begin) * S), round((9000 + end) * S))
        for i, (begin, end, _) in enumerate(LOAD.bursts)
    )
    noon_ns = round(LOAD.start.timestamp()) * S
    meta = {"clock": {"monotonic_ns": 9000 * S, "unix_ns": noon_ns}}
    (tmp_path / "gpu.csv").write_text(gpu_csv(LOAD, ahead_s=-3600))
    own = Given("run.sqlite", InputKind.CAPTURE, Capture(steps=steps, meta=meta), None)
    other = Given("gpu.csv", InputKind.TELEMETRY, read_telemetry(tmp_path / "gpu.csv"), None)
    capture = join([other, own])
    assert capture.meta["clock"] == meta["clock"]
    assert capture.sources[0].offset_ns / S == pytest.approx(9000)
    # Between the first and the last step: 61 s to 576 s after noon, a second later at the most.
    times = [s.t_ns / S - 9000 for s in capture.device_samples]
    assert (min(times), max(times)) == (60, 576)


def step(index: int, start_ns: int, end_ns: int) -> Step:
    nothing = dict.fromkeys(Step._fields)
    return Step(
        **nothing
        | {"id": index, "rank": 0, "start_ns": start_ns, "end_ns": end_ns, "phase": "decode"}
        | {"warmup": False, "prefill_requests": 0, "prefill_tokens": 0, "decode_requests": 1}
    )


@pytest.mark.parametrize("is_cpu", [True, False])
def test_a_record_tells_what_a_trace_of_it_does_not(is_cpu: bool) -> None:
    """Its steps count requests, and a CPU has no kernels to trace."""
    clock = {"clock": {"t_ns": 0, "unix_ns": round(LOAD.start.timestamp()) * S}}
    device = DeviceSpec("one", {"fp32": 1e11}, None, 1e10, is_cpu=is_cpu)
    steps = tuple(step(i, i * 9 * S, (i * 9 + 4) * S) for i in range(4))
    missing = Event(0, "check", None, {"sentence": "Trace with -t cuda.", "about": "kernels"})
    record = Capture(subject=Subject(device=device), steps=steps, meta=clock)
    traced = Capture(steps=steps, events=(missing,), meta=clock | {"trace": {"counted": False}})
    capture = join(
        [
            Given("run.sqlite", InputKind.CAPTURE, record, None),
            Given("trace.json", InputKind.KINETO, traced, None),
        ]
    )
    assert capture.meta["trace"]["counted"] is True
    assert (missing in capture.events) is not is_cpu
    # Of two traces alone the marks count on.
    alone = join([Given(n, InputKind.KINETO, traced, None) for n in ("a.json", "b.json")])
    assert alone.meta["trace"]["counted"] is False


@pytest.mark.parametrize(("off_s", "is_joined"), [(1.9, True), (2.1, False)])
def test_two_exact_records_are_joined_up_to_two_seconds_apart(
    off_s: float, is_joined: bool
) -> None:
    """One clock runs fast: its work begins so much early and ends as much late, at the best."""

    def worked(begin: float, end: float) -> Capture:
        watched = tuple(
            DeviceSample(t * S, "host", "host_cpu_cores", 1.0, "cores") for t in (0, 640)
        )
        steps = (step(0, round(begin * S), round(end * S)),)
        clock = {"clock": {"t_ns": 0, "unix_ns": round(LOAD.start.timestamp()) * S}}
        return Capture(steps=steps, device_samples=watched, meta=clock)

    own = Given("run.sqlite", InputKind.CAPTURE, worked(100.0, 500.0), None)
    trace = Given("trace.json", InputKind.KINETO, worked(100.0 - off_s, 500.0 + off_s), None)
    if is_joined:
        assert join([own, trace]).meta["joined"][0]["residual_ns"] / S == pytest.approx(off_s)
        return
    with pytest.raises(InputError) as caught:
        join([own, trace])
    assert "do not fit: work begins and ends 2.1 s apart (at most 2.0 s is accepted)" in str(
        caught.value
    )
    assert str(caught.value).endswith("set a clock by hand: --offset trace.json=±SECONDS")
