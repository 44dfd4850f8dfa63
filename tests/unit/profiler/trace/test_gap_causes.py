"""Idle time shared out over what the host did, against a timeline that marks every nanosecond."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from trace_builder import US, calls, ranges, trace

from stallscope.profiler.trace.gap_causes import CAUSES, gap_causes
from stallscope.profiler.trace.intervals import union
from stallscope.profiler.trace.timeline import CallKind

LENGTH = 40
SPAN = st.tuples(st.integers(0, LENGTH), st.integers(0, LENGTH)).map(sorted).map(tuple)
IDLE = st.lists(SPAN, max_size=6)
CALLS = st.lists(st.tuples(SPAN, st.sampled_from(list(CallKind)), st.integers(0, 2)), max_size=10)
SPANS = st.lists(st.tuples(SPAN, st.integers(0, 2)), max_size=5)
NAMES = {
    CallKind.LAUNCH: "launch",
    CallKind.GRAPH_LAUNCH: "launch",
    CallKind.COPY: "copy",
    CallKind.ALLOC: "alloc",
    CallKind.CAPTURE: "capture",
    CallKind.SYNC: "sync",
}


@settings(deadline=None, max_examples=200)
@given(IDLE, CALLS, SPANS, SPANS)
def test_every_idle_nanosecond_goes_to_the_first_cause_under_way(
    idle, made, waits, operators
) -> None:  # type: ignore[no-untyped-def]
    launching = np.array([0, 2], dtype=np.int32)  # thread 1 launches nothing
    active: list[tuple[int, int, str]] = [
        (a, b, NAMES[kind]) for (a, b), kind, thread in made if thread != 1 and kind in NAMES
    ]
    active += [(a, b, "wait") for (a, b), thread in waits if thread != 1]
    active += [(a, b, "operator") for (a, b), thread in operators if thread != 1]
    expected = dict.fromkeys(CAUSES, 0)
    for t in range(LENGTH):
        if any(a <= t < b for a, b in idle):
            under_way = [cause for a, b, cause in active if a <= t < b]
            expected[min(under_way, key=CAUSES.index, default="unseen")] += US
    found = gap_causes(
        trace(
            calls=calls(*((a, b, kind, thread) for (a, b), kind, thread in made)),
            waits=ranges(*((a, b, 0, thread) for (a, b), thread in waits)),
            operators=ranges(*((a, b, 0, thread) for (a, b), thread in operators)),
        ),
        union(
            np.array([a * US for a, _ in idle], dtype=np.int64),
            np.array([b * US for _, b in idle], dtype=np.int64),
        ),
        launching,
    )
    assert dict(found) == expected
