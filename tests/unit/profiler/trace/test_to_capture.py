"""A trace reduced to steps, kernel rows and figures, by hand; times in microseconds."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from trace_builder import US, CallKind, CopyKind, calls, copies, kernels, ranges, trace

from stallscope.analyzers.diagnose import diagnose
from stallscope.errors import InputError
from stallscope.profiler.capture import Capture, Step
from stallscope.profiler.trace.timeline import Finding, Series, Trace, TracedDevice
from stallscope.profiler.trace.to_capture import capture_of

GEMM, GEMV, NCCL = 0, 1, 2
NAMES = ("ampere_sgemm_128x64_tn", "gemv2T_kernel_val", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
PREFILL, DECODE, WARMUP = 0, 1, 2
TEXTS = ("prefill", "decode", "warmup")

# Warm-up, a prefill that outlasts its mark, and three decodes: kernels one after another, on two
# streams at once, and launched from another thread. The last kernel belongs to nothing.
SERVED = trace(
    names=NAMES,
    texts=TEXTS,
    marks=ranges(
        (0, 100, WARMUP),
        (1000, 1100, PREFILL, 0, 512),
        (1200, 1220, DECODE, 0, 4),
        (1300, 1320, DECODE, 0, 4),
        (1400, 1420, DECODE, 0, 4),
    ),
    kernels=kernels(
        (10, 60, GEMM, 5, 0),
        (1010, 1150, GEMM, 1005, 0),
        (1205, 1215, GEMV, 1201, 0),
        (1215, 1235, GEMV, 1202, 0),
        (1305, 1325, GEMV, 1301, 0),
        (1310, 1330, GEMV, 1302, 0, 0, 7),
        (1405, 1425, GEMV, 1401, 1),
        (1500, 1510, GEMM),
    ),
)


def figure(capture: Capture, name: str, phase: str | None = None) -> float:
    (found,) = (
        event.data["value"]
        for event in capture.events
        if event.kind == "trace_figure"
        and event.data["name"] == name
        and event.data.get("phase") == phase
    )
    return float(found)


def figures(capture: Capture, prefix: str) -> dict[str, float]:
    return {
        event.data["name"]: event.data["value"]
        for event in capture.events
        if event.kind == "trace_figure" and event.data["name"].startswith(prefix)
    }


def busy_share(capture: Capture) -> float:
    values = [s.value for s in capture.device_samples if s.name == "trace_kernel_busy"]
    return sum(values) / len(values)


def sentences(*traces: Trace) -> list[str]:
    events = capture_of(traces).events
    return [event.data["sentence"] for event in events if event.kind == "check"]


def blocked_as(*traces: Trace) -> list[str]:
    events = capture_of(traces).events
    return [e.data["class"] for e in events if e.kind == "check" and "class" in e.data]


def times(step: Step) -> tuple[int, int, int | None, int | None]:
    """Start, end, device and host time in microseconds."""
    device = None if step.device_ns is None else step.device_ns // US
    host = None if step.host_ns is None else step.host_ns // US
    return step.start_ns // US, step.end_ns // US, device, host


def test_steps_end_with_their_last_kernel_and_count_overlap_once() -> None:
    steps = capture_of([SERVED]).steps
    assert [(s.phase, s.warmup) for s in steps] == [
        ("other", True),
        ("prefill", False),
        ("decode", False),
        ("decode", False),
        ("decode", False),
    ]
    assert [times(s) for s in steps] == [
        (0, 100, 50, 50),
        (1000, 1150, 140, 10),
        (1200, 1235, 30, 5),  # 1205 to 1235
        (1300, 1330, 25, 5),  # 1305 to 1330, though the two kernels took 40
        (1400, 1425, 20, 5),
    ]
    assert [(s.prefill_tokens, s.decode_requests) for s in steps[1:3]] == [(512, 0), (0, 4)]
    assert {s.context_tokens for s in steps} == {None}


def test_kernels_are_summed_by_name_and_phase_without_warm_up() -> None:
    rows = capture_of([SERVED]).kernels
    assert [(k.phase, k.kernel_class, k.name, k.launches, k.busy_ns // US) for k in rows] == [
        ("decode", "gemv", NAMES[GEMV], 5, 10 + 20 + 20 + 20 + 20),
        ("prefill", "gemm", NAMES[GEMM], 1, 140),
    ]


def test_busy_is_the_union_over_the_window_of_the_steps() -> None:
    samples = capture_of([SERVED]).device_samples
    # From 1000, the prefill's mark, to 1425, where the last decode's kernel ends.
    assert {sample.name for sample in samples} == {"trace_kernel_busy"}
    assert busy_share(capture_of([SERVED])) == pytest.approx((140 + 30 + 25 + 20) / 425)
    # A hundred parts of 4.25 µs: the third begins at 1008.5 and is busy from 1010 to 1012.75, the
    # last ones of the gap from 1150 to 1205 are idle.
    assert len(samples) == 100
    assert samples[2].value == pytest.approx(2.75 / 4.25, rel=1e-3)
    assert samples[47].value == 0.0
    assert figure(capture_of([SERVED]), "trace_kernel_busy", "prefill") == pytest.approx(140 / 150)
    decode = figure(capture_of([SERVED]), "trace_kernel_busy", "decode")
    assert decode == pytest.approx((30 + 25 + 20) / (35 + 30 + 25))
    assert figure(capture_of([SERVED]), "kernel_rate") == pytest.approx(6 / 425e-6)
    assert figure(capture_of([SERVED]), "kernel_length_mean") == pytest.approx(230e-6 / 6)


def test_it_says_how_kernels_were_joined_to_steps() -> None:
    (event,) = (e for e in capture_of([SERVED]).events if e.kind == "trace_join")
    assert event.data == {
        "kernels": 8,
        "launch": 6 / 8,
        "other_thread": 1 / 8,
        "nothing": 1 / 8,
    }


def test_without_launches_kernels_belong_to_the_step_they_begin_in() -> None:
    untied = trace(
        names=NAMES,
        texts=TEXTS,
        marks=ranges((0, 10, PREFILL), (10, 20, DECODE)),
        kernels=kernels((1, 9, GEMM), (10, 14, GEMV), (25, 30, GEMV)),
    )
    capture = capture_of([untied])
    assert [times(s) for s in capture.steps] == [(0, 10, 8, 2), (10, 20, 4, 6)]
    (event,) = (e for e in capture.events if e.kind == "trace_join")
    assert event.data["time"] == pytest.approx(2 / 3)


def test_a_step_that_runs_behind_its_mark_begins_where_the_last_one_ended() -> None:
    """The host launches both at once; the second one's kernels wait for the first one's."""
    ahead = trace(
        names=NAMES,
        texts=TEXTS,
        marks=ranges((0, 10, DECODE), (10, 20, DECODE)),
        kernels=kernels((5, 50, GEMV, 2, 0), (50, 90, GEMV, 12, 0)),
    )
    assert [times(s) for s in capture_of([ahead]).steps] == [(0, 50, 45, 5), (50, 90, 40, 0)]


def test_marks_that_do_not_say_how_many_are_no_count_of_requests() -> None:
    """A plain prefill tells its tokens at most; decode with a payload tells its requests."""
    plain = trace(texts=TEXTS, marks=ranges((0, 10, PREFILL), (10, 30, DECODE)))
    capture = capture_of([plain])
    assert capture.meta["trace"]["counted"] is False
    assert [s.logit_rows for s in capture.steps] == [None, None]
    assert "decode_share_requests" not in {m.name for m in diagnose(capture).measures}
    told = trace(texts=TEXTS, marks=ranges((0, 10, DECODE, 0, 4), (10, 30, DECODE, 0, 4)))
    counted = capture_of([told])
    assert counted.meta["trace"]["counted"] is True
    rates = {m.name: m.value for m in diagnose(counted).measures}
    assert rates["decode_tokens_per_s"] == pytest.approx(8 / 30e-6)
    assert rates["decode_share_requests"] == 1.0


def test_the_window_reaches_to_the_last_kernel_of_the_last_step() -> None:
    """The mark ends at 10; the graph that was launched in it runs from 20 to 98, with gaps."""
    graph = trace(
        names=NAMES,
        texts=TEXTS,
        marks=ranges((0, 10, DECODE, 0, 1)),
        kernels=kernels(*((20 + i * 10, 28 + i * 10, GEMV, 5, 0, 0, 7, 3) for i in range(8))),
    )
    capture = capture_of([graph])
    assert [times(s) for s in capture.steps] == [(0, 98, 64, 34)]
    assert busy_share(capture) == pytest.approx(64 / 98)
    assert [k.launches for k in capture.kernels] == [8]
    assert figure(capture, "kernels_in_graphs") == 1.0


def test_of_nested_marks_the_inner_ones_are_steps() -> None:
    nested = trace(
        names=NAMES,
        texts=TEXTS,
        marks=ranges((0, 100, DECODE), (10, 40, DECODE), (40, 90, DECODE), (0, 200, DECODE, 1)),
        kernels=kernels((10, 20, GEMV, 11, 0)),
    )
    steps = capture_of([nested]).steps
    assert [(s.start_ns // US, s.end_ns // US) for s in steps] == [(0, 200), (10, 40), (40, 90)]


def test_communication_and_copies_are_exposed_where_nothing_computes() -> None:
    moved = trace(
        names=NAMES,
        kernels=kernels((0, 100, GEMM), (50, 150, NCCL, -1, -1, 0, 5), (300, 310, GEMM)),
        copies=copies(
            (140, 200, CopyKind.HOST_TO_DEVICE, 3000, 1),
            (90, 110, CopyKind.HOST_TO_DEVICE, 1000, 0),
            (295, 305, CopyKind.DEVICE_TO_HOST, 10, 0),
            (200, 230, CopyKind.WITHIN_DEVICE, 10),
        ),
    )
    capture = capture_of([moved])
    rows = {k.name: k for k in capture.kernels}
    nccl = rows[NAMES[NCCL]]
    assert (nccl.kernel_class, nccl.busy_ns // US, nccl.exposed_ns) == (
        "communication",
        100,
        50 * US,
    )
    down = rows["copy, host to device"]
    # 140 to 200 whole, and 100 to 110 of the other: communication is no computing.
    assert (down.kernel_class, down.launches, down.exposed_ns) == ("copy", 2, (60 + 10) * US)
    up = rows["copy, device to host"]
    assert up.exposed_ns == 5 * US
    within = rows["copy, within a device"]
    assert (within.kernel_class, within.exposed_ns) == ("elementwise", None)
    assert figure(capture, "host_to_device_bytes") == 4000
    assert figure(capture, "pageable_share") == pytest.approx(0.75)


def test_a_gap_after_the_first_kernel_is_start_up() -> None:
    """One kernel, 463 ms of nothing, then 10 ms of dense work: the step is busy, not idle."""
    dense = [(463_000 + i * 100, 463_000 + i * 100 + 95, GEMV) for i in range(100)]
    capture = capture_of([trace(names=NAMES, kernels=kernels((0, 3, GEMM), *dense))])
    assert busy_share(capture) == pytest.approx(100 * 95 / (99 * 100 + 95))
    (said,) = (e.data["sentence"] for e in capture.events if e.kind == "check")
    assert "0.46 s after the first kernels" in said


def test_gaps_between_work_on_both_sides_are_idleness() -> None:
    rows = [(i * 100_000, i * 100_000 + 500, GEMV) for i in range(30)]
    capture = capture_of([trace(names=NAMES, kernels=kernels(*rows))])
    assert busy_share(capture) == pytest.approx(30 * 500 / (29 * 100_000 + 500))
    assert [e for e in capture.events if e.kind == "check"] == []


def test_why_the_device_idled() -> None:
    """Idle from 10 to 40 and 50 to 60."""
    idle = trace(
        names=NAMES,
        kernels=kernels((0, 10, GEMV, 0, 0), (40, 50, GEMV, 36, 0), (60, 100, GEMV, 55, 0)),
        calls=calls(
            (12, 15, CallKind.ALLOC, 0),
            (14, 25, CallKind.SYNC, 0),
            (36, 38, CallKind.LAUNCH, 0),
            (55, 60, CallKind.LAUNCH, 0),
        ),
    )
    assert figures(capture_of([idle]), "idle_in_") == {
        "idle_in_alloc": pytest.approx(0.03),
        "idle_in_sync": pytest.approx(0.10),
        "idle_in_launch": pytest.approx(0.02 + 0.05),
        "idle_in_queued": pytest.approx(0.02),
        "idle_in_unseen": pytest.approx(0.18),
    }


def test_nothing_is_said_of_the_host_where_it_was_not_traced() -> None:
    assert figures(capture_of([SERVED]), "idle_in_") == {}


def test_device_metrics_are_averaged_by_phase() -> None:
    t = np.array([1050, 1140, 1160, 1210, 1310, 1410], dtype=np.int64) * US
    metric = Series(0, "nsys_sm_issue", "fraction", t, np.array([0.9, 0.7, 0.0, 0.1, 0.2, 0.3]))
    capture = capture_of([dataclasses.replace(SERVED, series=(metric,))])
    assert figure(capture, "nsys_sm_issue", "prefill") == pytest.approx(0.8)
    assert figure(capture, "nsys_sm_issue", "decode") == pytest.approx(0.2)
    samples = [s for s in capture.device_samples if s.name == "nsys_sm_issue"]
    assert [s.value for s in samples] == pytest.approx([0.9, 0.7, 0.0, 0.1, 0.2, 0.3])


MANY = [(i * 10, i * 10 + 8, GEMV) for i in range(20)]


def test_too_little_to_say() -> None:
    assert blocked_as(trace(names=NAMES, kernels=kernels(*MANY[:19]))) == ["undetermined"]
    assert blocked_as(trace(names=NAMES, kernels=kernels(*MANY))) == []
    long = [(i * 500, i * 500 + 400, GEMM) for i in range(3)]
    assert blocked_as(trace(names=NAMES, kernels=kernels(*long[:2]))) == ["undetermined"]
    assert blocked_as(trace(names=NAMES, kernels=kernels(*long))) == []


def test_no_kernel() -> None:
    assert blocked_as(trace()) == ["profiler"]
    marked = trace(texts=TEXTS, marks=ranges((0, 10, DECODE)))
    assert blocked_as(marked) == []
    (said,) = sentences(marked)
    assert said.startswith("What a device did in these steps is not known. The trace holds no ker")
    reason = Finding("no_kernel_table", "CUDA was not traced", "Use -t cuda.")
    assert sentences(dataclasses.replace(trace(), findings=(reason,))) == [
        "CUDA was not traced. Use -t cuda. No range marks a step either."
    ]


def test_a_profiler_that_took_much_of_the_time_is_told() -> None:
    """Twenty kernels of 8 µs in 198: 5 % are 9.9 µs."""
    for overhead_ns, told in ((9_800, 0), (9_900, 1)):
        facts = {"profiler_overhead_ns": overhead_ns}
        slowed = dataclasses.replace(trace(names=NAMES, kernels=kernels(*MANY)), facts=facts)
        assert len(sentences(slowed)) == told


def test_a_trace_of_graphs_being_captured() -> None:
    sparse = [(i * 1000, i * 1000 + 8, GEMV) for i in range(30)]
    made = calls((0, 5, CallKind.CAPTURE, 0))
    assert blocked_as(trace(names=NAMES, kernels=kernels(*sparse), calls=made)) == ["profiler"]
    assert blocked_as(trace(names=NAMES, kernels=kernels(*MANY), calls=made)) == []


def test_ranks_keep_their_devices_apart() -> None:
    device = TracedDevice("cuda:0", "NVIDIA A100-SXM4-80GB", {"memory_bytes": 85e9})
    two = [trace(names=NAMES, kernels=kernels(*MANY[i:]), devices=[device]) for i in range(2)]
    capture = capture_of(two)
    assert {(k.rank, k.device) for k in capture.kernels} == {
        (0, "rank 0 cuda:0"),
        (1, "rank 1 cuda:0"),
    }
    assert capture.subject.num_devices == 2
    assert capture.subject.device is not None
    assert capture.subject.device.name == "a100-sxm4-80gb"
    assert capture.subject.device.memory_bytes == 85_000_000_000


def test_an_empty_rank_is_named_and_blocks_nothing_while_another_answers() -> None:
    empty, full = trace(), trace(names=NAMES, kernels=kernels(*MANY))
    assert sentences(full, empty)[0].startswith("Rank 1: The trace holds no kernel")
    assert blocked_as(full, empty) == []
    assert blocked_as(empty, empty) == ["profiler", "profiler"]


def test_missing_ranks_are_named() -> None:
    facts = {"world_size": 4}
    traces = [
        dataclasses.replace(
            trace(names=NAMES, kernels=kernels(*MANY, (200, 200 + rank, GEMV))),
            rank=rank,
            facts=facts,
        )
        for rank in (3, 1)
    ]
    (said,) = sentences(*traces)
    assert said.startswith("The run had 4 ranks; 2 of them were given. Missing: 0, 2.")
    assert {k.rank for k in capture_of(traces).kernels} == {1, 3}


def test_not_every_missing_rank_is_named() -> None:
    """A damaged file may speak of 10 ** 12 ranks."""
    one = trace(names=NAMES, kernels=kernels(*MANY))
    (said,) = sentences(dataclasses.replace(one, rank=1, facts={"world_size": 10**12}))
    assert "1 of them were given. Missing: 0, 2, 3, " in said
    assert ", 64, …. How" in said


def test_samples_of_several_devices_are_in_order_of_time() -> None:
    rows = [(*row, -1, -1, device) for row in MANY for device in (0, 1)]
    devices = [TracedDevice("cuda:0", None), TracedDevice("cuda:1", None)]
    samples = capture_of([trace(names=NAMES, kernels=kernels(*rows), devices=devices)])
    times = [sample.t_ns for sample in samples.device_samples]
    assert len({sample.device for sample in samples.device_samples}) == 2
    assert times == sorted(times)


def rank_of(first: int, unix_us: int | None, product: str | None = None) -> Trace:
    """Twenty kernels from `first` on, on a clock that began at `unix_us`."""
    rows = [(first + a, first + b, name) for a, b, name in MANY]
    device = TracedDevice("cuda:0", product)
    made = trace(names=NAMES, kernels=kernels(*rows), devices=[device])
    return dataclasses.replace(
        made, path=f"from{first}", unix_ns=None if unix_us is None else unix_us * US
    )


def test_ranks_are_laid_on_one_clock() -> None:
    """The second trace began 50 µs later, so what it calls 0 is 50 on the first one's clock."""
    capture = capture_of([rank_of(0, 1000), rank_of(1, 1050)])
    assert [source.offset_ns for source in capture.sources] == [0, 50 * US]
    times = [s.t_ns for s in capture.device_samples if s.device == "rank 1 cuda:0"]
    assert (min(times) - 51 * US, max(times)) == (pytest.approx(1980, abs=1), (51 + 198) * US)


def test_traces_that_are_no_ranks_of_one_run_are_refused() -> None:
    with pytest.raises(InputError, match="from0: holds the same trace as from0"):
        capture_of([rank_of(0, None), rank_of(0, None)])
    with pytest.raises(InputError, match="from1: is of H100, unlike from0"):
        capture_of([rank_of(0, None, "MI300X"), rank_of(1, None, "H100")])
    # The first one works from 0 to 198, the second from 199 on, or from 198.
    with pytest.raises(InputError, match="from1: was traced at another time than from0"):
        capture_of([rank_of(0, 1000), rank_of(1, 1198)])
    capture_of([rank_of(0, 1000), rank_of(1, 1197)])
    capture_of([rank_of(0, 1000), rank_of(1, None)])  # nothing says when


def test_no_trace_is_refused() -> None:
    with pytest.raises(ValueError, match="no trace"):
        capture_of([])


def test_a_gap_with_work_queued_is_not_the_hosts() -> None:
    """The host launched all three at once, calls of 2 µs each; the third one waits for nothing."""
    ahead = trace(
        names=NAMES,
        texts=TEXTS,
        marks=ranges((0, 110, DECODE)),
        kernels=kernels((10, 40, GEMV, 0, 0), (60, 80, GEMV, 2, 0), (100, 110, GEMV, 85, 0)),
        calls=calls(
            (0, 2, CallKind.LAUNCH, 0), (2, 4, CallKind.LAUNCH, 0), (85, 88, CallKind.LAUNCH, 0)
        ),
    )
    found = figures(capture_of([ahead]), "idle_in_")
    # Idle: 0 to 10, 40 to 60, 80 to 100. From 40 to 60 and from 88 to 100 the next was launched.
    assert found == {
        "idle_in_queued": pytest.approx(32 / 110),
        "idle_in_launch": pytest.approx((2 + 2 + 3) / 110),
        "idle_in_unseen": pytest.approx((6 + 5) / 110),
    }
    (step,) = capture_of([ahead]).steps
    assert times(step) == (0, 110, 60, 110 - 60 - 32)


def test_a_trace_that_begins_in_the_middle_of_things() -> None:
    """The step's kernels were launched at once and began 463 ms later: what ran is not shown."""
    rows = [(463_000 + i * 10, 463_009 + i * 10, GEMV, 20 + i, 0) for i in range(50)]
    late = trace(
        names=NAMES,
        texts=TEXTS,
        marks=ranges((10, 463_500, DECODE, 0, 32)),
        kernels=kernels((0, 4, GEMM), *rows),
        calls=calls(*((20 + i, 21 + i, CallKind.LAUNCH, 0) for i in range(50))),
    )
    capture = capture_of([late])
    assert busy_share(capture) == pytest.approx(450 / 500)
    (said,) = sentences(late)
    assert said.startswith("The figures leave out a gap of 0.46 s before the first kernels")
    waited = dataclasses.replace(
        late, kernels=kernels((0, 4, GEMM), *((*row[:3], row[0] - 5, 0) for row in rows))
    )
    # Launched just before they ran: the host was late, and the gap is the step's.
    assert busy_share(capture_of([waited])) == pytest.approx(450 / 463_490, rel=1e-3)
    assert sentences(waited) == []


def test_idle_time_within_an_engines_own_marks() -> None:
    """Idle from 10 to 40: scheduling to 20, sampling from 30, and nothing marked between."""
    texts = ("schedule: allocate_slots", "gpu_model_runner: sample", "gpu_model_runner: forward")
    scoped = trace(
        names=NAMES,
        texts=texts,
        marks=ranges((5, 20, 0, 1), (30, 45, 1), (40, 90, 2)),
        kernels=kernels((0, 10, GEMV), (40, 100, GEMV)),
    )
    assert figures(capture_of([scoped]), "idle_within_") == {
        "idle_within_schedule": pytest.approx(0.10),
        "idle_within_sample": pytest.approx(0.10),
        "idle_within_forward": 0.0,
    }


def test_a_device_whose_kernels_take_no_time_idles() -> None:
    rows = [*MANY, *((a, a, GEMM, -1, -1, 1) for a, _, _ in MANY)]
    two = trace(
        names=NAMES,
        kernels=kernels(*rows),
        devices=[TracedDevice("cuda:0"), TracedDevice("cuda:1")],
    )
    capture = capture_of([two])
    assert {s.device for s in capture.device_samples} == {"cuda:0"}
    assert {k.device: k.busy_ns for k in capture.kernels} == {"cuda:0": 160 * US, "cuda:1": 0}
