"""Kernels joined to steps, against a search through every step for every kernel."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import US, kernels, ranges, trace

from stallscope.profiler.trace.device_work import device_work
from stallscope.profiler.trace.phases import JoinedBy, MarkedStep, join, marked_steps
from stallscope.profiler.trace.step_rows import step_rows
from stallscope.profiler.trace.timeline import TracedDevice

LENGTH = 40
# Steps of three threads, which on one thread do not overlap: cut points in order, taken in pairs.
CUTS = st.lists(st.integers(0, LENGTH), min_size=2, max_size=8, unique=True).map(sorted)
STEPS = st.lists(CUTS, min_size=1, max_size=3)
KERNEL = st.tuples(
    st.integers(0, LENGTH),
    st.integers(0, 6),
    st.one_of(st.just(-1), st.integers(0, LENGTH)),
    st.integers(-1, 2),
    st.integers(0, 1),
)


def spans_of(threads: list[list[int]]) -> list[tuple[int, int, int]]:
    """(start, end, thread) in order of start, as marked_steps returns them."""
    spans = [
        (cuts[i], cuts[i + 1], thread)
        for thread, cuts in enumerate(threads)
        for i in range(0, len(cuts) - 1, 2)
    ]
    return sorted(spans, key=lambda span: (span[0], -span[1]))


def expected_step(
    steps: tuple[MarkedStep, ...], start: int, launch: int, thread: int
) -> tuple[int, JoinedBy]:
    if launch == -1:
        begun = [i for i, s in enumerate(steps) if s.start_ns <= start * US]
        if begun and start * US < steps[begun[-1]].end_ns:
            return begun[-1], JoinedBy.TIME
        return -1, JoinedBy.NOTHING
    own = [i for i, s in enumerate(steps) if s.thread == thread and s.start_ns <= launch * US]
    if own and launch * US < steps[own[-1]].end_ns:
        return own[-1], JoinedBy.LAUNCH
    begun = [i for i, s in enumerate(steps) if s.start_ns <= launch * US]
    if begun and launch * US < steps[begun[-1]].end_ns:
        return begun[-1], JoinedBy.OTHER_THREAD
    return -1, JoinedBy.NOTHING


def test_two_marks_of_one_step_complete_each_other() -> None:
    """SGLang's own mark says how many requests, the annotation around it what they read."""
    outer = "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk32785sqsq32sqsk32785)"
    made = trace(
        texts=(outer, "step[DECODE bs=32]", "decode"),
        marks=ranges((0, 100, 0), (10, 90, 1), (200, 400, 2), (210, 250, 2), (260, 300, 2)),
    )
    first, second, third = marked_steps(made)
    assert (first.start_ns, first.end_ns) == (10 * US, 90 * US)
    assert (first.mark.engine, first.mark.decode_requests) == ("sglang", 32)
    assert (first.mark.context_tokens, first.mark.attention_pairs) == (32785, 32785)
    assert [(s.start_ns // US, s.end_ns // US) for s in (second, third)] == [(210, 250), (260, 300)]


@settings(deadline=None, max_examples=300)
@given(STEPS, st.lists(KERNEL, max_size=12))
def test_every_kernel_has_the_step_that_a_search_finds(threads, rows) -> None:  # type: ignore[no-untyped-def]
    made = trace(
        texts=("decode",),
        marks=ranges(*((a, b, 0, thread) for a, b, thread in spans_of(threads))),
        kernels=kernels(
            *((s, s + d, 0, launch, thread, dev) for s, d, launch, thread, dev in rows)
        ),
        devices=[TracedDevice("cuda:0"), TracedDevice("cuda:1")],
    )
    steps = marked_steps(made)
    joined = join(made.kernels, steps)
    found = [(int(i), JoinedBy(how)) for i, how in zip(joined.step, joined.how, strict=True)]
    assert found == [
        expected_step(steps, start, launch, thread) for start, _, launch, thread, _ in rows
    ]
    # The time of each step's kernels: marked nanosecond by nanosecond, a moment that two steps
    # share counted for the row that began first, on the busiest device.
    claimed: dict[tuple[int, int], dict[int, int]] = {}
    order = sorted(range(len(rows)), key=lambda i: rows[i][0])
    seen: set[tuple[int, int]] = set()
    for i in order:
        start, length, _, _, device = rows[i]
        step = found[i][0]
        for t in range(start, start + length):
            if (device, t) not in seen:
                seen.add((device, t))
                claimed.setdefault((step, device), {})[t] = 1
    nothing = join(made.copies, steps)
    devices = [device_work(made, device, joined, nothing) for device in (0, 1)]
    for number, row in enumerate(step_rows(steps, devices, rank=0)):
        times = [len(claimed.get((number, device), {})) for device in (0, 1)]
        has_any = any(step == number for step, _ in found)
        assert (row.device_ns is not None) == has_any
        if has_any:
            assert row.device_ns == min(max(times) * US, row.end_ns - row.start_ns)
