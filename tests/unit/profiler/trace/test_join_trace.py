"""A run's own record joined with a trace of it, by hand; times in microseconds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from trace_builder import US, calls, copies, kernels, ranges, trace

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture, DeviceSample, Event, KernelSummary, Source, Step
from stallscope.profiler.spec import DeviceSpec, Subject
from stallscope.profiler.trace.timeline import CallKind, Finding, Series, Trace
from stallscope.profiler.wrap.alignment import shifted
from stallscope.profiler.wrap.handshake import Announced
from stallscope.profiler.wrap.join import join_trace

GEMM, GEMV = 0, 1
NAMES = ("ampere_sgemm_128x64_tn", "gemv2T_kernel_val")
PREFILL, DECODE, WARMUP = 0, 1, 2
TEXTS = ("prefill", "decode", "warmup")
# The record's clock is 50 s ahead of the trace's: 100 s against 50 s of one moment.
AHEAD = 50_000_000
CPU = DeviceSpec("a CPU", {"fp32": 1e11}, None, 1e10, is_cpu=True)
GPU = replace(CPU, name="a GPU", is_cpu=False)


def step(id: int, start: int, end: int, phase: str, *, warmup: bool = False) -> Step:
    """A step of one request: 512 new tokens, or one."""
    nothing: dict[str, Any] = dict.fromkeys(Step._fields)
    known = {
        "id": id,
        "rank": 0,
        "start_ns": (start + AHEAD) * US,
        "end_ns": (end + AHEAD) * US,
        "phase": phase,
        "warmup": warmup,
        "prefill_requests": int(phase == "prefill"),
        "prefill_tokens": 512 * (phase == "prefill"),
        "decode_requests": int(phase == "decode"),
    }
    return Step(**(nothing | known))


OWN = Capture(
    subject=Subject(device=GPU),
    steps=(
        step(0, 10_000, 20_000, "other", warmup=True),
        step(1, 20_000, 60_000, "prefill"),
        step(2, 60_000, 66_000, "decode"),
        step(3, 66_000, 72_500, "decode"),
    ),
    events=(Event((60_001 + AHEAD) * US, "kv_read", None, {"bytes": 1}),),
    meta={"tool": {"name": "stallscope"}, "ended": {"unix_ns": 7}},
)
MARKS = ranges(
    (10_010, 19_990, WARMUP),
    (20_010, 59_990, PREFILL, 0, 512),
    (60_010, 65_990, DECODE, 0, 1),
    (66_010, 72_490, DECODE, 0, 1),
)
# One kernel in each step; the prefill's is launched early, and runs into the decode after it.
RAN = kernels(
    (12_000, 13_000, GEMM, 11_000, 0),
    (21_000, 61_000, GEMM, 20_500, 0),
    (61_000, 65_000, GEMV, 60_500, 0),
    (67_000, 72_000, GEMV, 66_500, 0),
)
UNIX_AT_ZERO = 1_700_000_000 * 10**9
SAID = Announced(
    Path("/tmp/own.sqlite"),
    pid=1,
    clock_ns=AHEAD * US + 5_000,
    unix_ns=UNIX_AT_ZERO + 5_000,
    error_ns=300,
    nvtx="0.2.17",
)
MARKED = trace(names=NAMES, texts=TEXTS, marks=MARKS, kernels=RAN, unix_ns=UNIX_AT_ZERO)
UNMARKED = trace(names=NAMES, kernels=RAN, unix_ns=UNIX_AT_ZERO)


def joined(
    seen: Trace, *, own: Capture = OWN, said: Announced = SAID, nsys: str = "2022.4.2.1"
) -> Capture:
    return join_trace(own, seen, said, nsys=nsys)


def busy_samples(capture: Capture) -> list[DeviceSample]:
    """Samples of equal stretches of the window: their mean is the window's."""
    return [s for s in capture.device_samples if s.name == "trace_kernel_busy"]


def busy_share(capture: Capture) -> float:
    return fmean(s.value for s in busy_samples(capture))


def rows(found: Sequence[KernelSummary]) -> list[tuple[str, str, int, int]]:
    return [(k.phase, k.kernel_class, k.launches, k.busy_ns // US) for k in found]


def sentences(capture: Capture) -> list[str]:
    return [event.data["sentence"] for event in capture.events if event.kind == "check"]


def join_shares(capture: Capture) -> dict[str, float]:
    (event,) = [event for event in capture.events if event.kind == "trace_join"]
    return {name: share for name, share in event.data.items() if name not in ("rank", "kernels")}


def test_ranges_tell_the_kernels_and_the_record_stands() -> None:
    found = joined(MARKED)
    assert found.steps == OWN.steps
    assert rows(found.kernels) == [("decode", "gemv", 2, 9_000), ("prefill", "gemm", 1, 40_000)]
    assert join_shares(found) == {"launch": 1.0}
    assert sentences(found)[0] == (
        "nsys traced all of the run's 4 recorded steps (2 decode, 1 prefill, 1 warmup); the "
        "largest difference in length is 0.02 ms."
    )
    assert found.meta["tool"] == {"name": "stallscope"}
    assert found.meta["ended"] == {"unix_ns": 7}
    assert found.meta["trace"]["tools"] == ["made by hand"]


def test_the_records_counts_hold_whatever_the_marks_say() -> None:
    """One request: 40 ms of prefill, 6 and 6.5 ms of decode."""
    for seen in (MARKED, UNMARKED):
        found = joined(seen)
        assert found.meta["trace"]["counted"] is True
        (rule,) = [r for r in diagnose(found).rules if r.id == "decode-focus"]
        (share,) = [m.value for m in rule.measures if m.name == "decode_share_requests"]
        assert share == pytest.approx(12.5 / 52.5)
        assert rule.status == "not met"


def test_everything_is_on_the_records_clock_and_in_order() -> None:
    found = joined(MARKED)
    # Ranges begin 10 µs after their steps, so the fitted clock is 10 µs off the wall clock.
    assert found.sources == (
        Source(0, "stallscope", "/tmp/own.sqlite", "monotonic", 0, 0),
        Source(1, "nsys", "trace", "nsys", (AHEAD - 10) * US, 200_000),
    )
    # From the prefill's start to the last step's end; the device idled from 20.01 to 21, from 65
    # to 67 and from 72 to 72.49 ms.
    idle = (990 + 2_000 + 490) / (72_490 - 20_010)
    assert busy_share(found) == pytest.approx(1 - idle, rel=1e-6)
    moments = [sample.t_ns for sample in busy_samples(found)]
    assert (20_000 + AHEAD) * US <= moments[0] <= moments[-1] <= (72_500 + AHEAD) * US
    times = [event.t_ns for event in found.events]
    assert times == sorted(times)
    assert min(times) == OWN.steps[0].start_ns


def test_lost_ranges_are_replaced_by_the_steps_at_the_wall_clock() -> None:
    found = joined(UNMARKED)
    assert found.steps == OWN.steps
    assert rows(found.kernels) == rows(joined(MARKED).kernels)
    assert join_shares(found) == {"other_thread": 1.0}
    assert sentences(found)[0] == (
        "The trace holds no range of the recorded steps (nsys 2022.4.2.1 with nvtx 0.2.17: every "
        "range is lost, silently): the wall clock tells which kernels belong to which step, "
        "within 2 ms. To get them: pip install 'nvtx<0.2.12', or use a newer nsys."
    )
    assert found.sources[1] == Source(1, "nsys", "trace", "nsys", AHEAD * US, 2_000_300)


def test_why_ranges_are_lost_is_only_said_where_it_is_known() -> None:
    said = sentences(joined(UNMARKED, said=replace(SAID, nvtx=None)))[0]
    assert "(nvtx is not installed where the command ran)" in said
    said = sentences(joined(UNMARKED, nsys="2025.5.1.121"))[0]
    assert "(nsys 2025.5.1.121 with nvtx 0.2.17)" in said
    assert "To get them: try another nsys, or pip install 'nvtx<0.2.12'." in said


def test_a_trace_without_clock_and_ranges_is_left_out() -> None:
    found = joined(replace(UNMARKED, unix_ns=None))
    assert (found.steps, found.kernels, found.device_samples) == (OWN.steps, (), ())
    assert [source.kind for source in found.sources] == ["stallscope"]
    (sentence,) = sentences(found)
    assert "it does not say when it began either, so it is left out" in sentence


def test_a_range_that_is_missing_is_told_and_its_kernels_are_not_lost() -> None:
    some = replace(MARKED, marks=ranges((20_010, 59_990, PREFILL), (60_010, 65_990, DECODE)))
    found = joined(some)
    assert sentences(found)[0] == (
        "nsys traced 2 of the 4 ranges that the run recorded meanwhile (1 decode, 1 warmup "
        "missing); kernels are told by the steps' own times."
    )
    assert rows(found.kernels) == rows(joined(MARKED).kernels)


def test_a_window_holds_only_its_own_steps() -> None:
    window = replace(
        MARKED,
        marks=ranges((60_010, 65_990, DECODE), (66_010, 72_490, DECODE)),
        kernels=kernels((61_000, 65_000, GEMV, 60_500, 0), (67_000, 72_000, GEMV, 66_500, 0)),
        window_ns=(59_000 * US, 80_000 * US),
    )
    found = joined(window)
    assert "traced all of the run's 2 recorded steps (2 decode)" in sentences(found)[0]
    assert found.steps == OWN.steps
    assert rows(found.kernels) == [("decode", "gemv", 2, 9_000)]
    lost = joined(replace(window, marks=ranges()))
    assert rows(lost.kernels) == [("decode", "gemv", 2, 9_000)]
    # Were all the record's steps marks, the window would begin at 20 ms and be idle to 61.
    assert busy_share(lost) == pytest.approx((4_000 + 5_000) / (72_500 - 60_000), rel=1e-6)


def test_steps_of_other_lengths_are_told_and_do_not_change_the_record() -> None:
    short = replace(
        MARKED,
        marks=ranges(
            (10_010, 19_990, WARMUP),
            (20_010, 50_000, PREFILL),
            (60_010, 65_990, DECODE),
            (66_010, 72_490, DECODE),
        ),
    )
    found = joined(short)
    assert found.steps == OWN.steps
    assert sentences(found)[1] == (
        "1 of 4 steps differ in length by more than 5 % and 1 ms between the trace and the run's "
        "own record; the record stands."
    )


def test_a_cpu_is_not_told_that_it_has_no_kernels() -> None:
    none = replace(
        MARKED,
        kernels=kernels(),
        findings=(
            Finding("no_kernel_table", "The file has no table of kernels", "Trace CUDA."),
            Finding("data_dropped", "nsys says that it lost data", "Trace for a shorter time."),
        ),
    )
    found = joined(none, own=replace(OWN, subject=Subject(device=CPU)))
    assert sentences(found)[1:] == ["nsys says that it lost data. Trace for a shorter time."]
    assert [source.kind for source in found.sources] == ["stallscope", "nsys"]
    assert any("no table of kernels" in said for said in sentences(joined(none)))


def test_the_readers_own_word_on_lost_ranges_is_not_repeated() -> None:
    finding = Finding("nvtx_lost", "No range arrived")
    assert not any(
        "No range arrived" in said
        for said in sentences(joined(replace(UNMARKED, findings=(finding,))))
    )


def test_shifting_moves_every_time_and_nothing_that_is_unknown() -> None:
    whole = trace(
        kernels=kernels((5, 6, 0, 4, 0), (7, 8, 0)),
        copies=copies((1, 2, 1, 100), (3, 4, 1, 100, 0, 0, 2)),
        calls=calls((1, 2, CallKind.LAUNCH, 0)),
        marks=ranges((1, 9, 0, 0, 512)),
        series=(Series(0, "nsys_sm_issue", "1", np.array([3 * US]), np.array([0.5])),),
        window_ns=(0, 10 * US),
        unix_ns=1_000_000,
    )
    moved = shifted(whole, 100 * US)
    assert moved.kernels.start_ns.tolist() == [105 * US, 107 * US]
    assert moved.kernels.end_ns.tolist() == [106 * US, 108 * US]
    assert moved.kernels.launch_ns.tolist() == [104 * US, -1]
    assert moved.copies.launch_ns.tolist() == [-1, 102 * US]
    assert moved.calls.start_ns.tolist() == [101 * US]
    assert (moved.marks.end_ns.tolist(), moved.marks.payload.tolist()) == ([109 * US], [512])
    assert moved.series[0].t_ns.tolist() == [103 * US]
    assert moved.window_ns == (100 * US, 110 * US)
    assert moved.unix_ns == 900_000  # of a time 0 that lies earlier now
    assert shifted(moved, -100 * US).kernels.start_ns.tolist() == whole.kernels.start_ns.tolist()
