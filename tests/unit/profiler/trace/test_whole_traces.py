"""Random traces of many streams, devices and ranks against a timeline marked by the nanosecond."""

from __future__ import annotations

import dataclasses
from collections import Counter

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from trace_builder import US, copies, kernels, trace

from stallscope.errors import InputError
from stallscope.profiler.trace.timeline import CopyKind, Trace, TracedDevice
from stallscope.profiler.trace.to_capture import capture_of

LENGTH = 50
NAMES = ("ampere_sgemm_128x64_tn", "gemv2T_kernel_val", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL")
CLASSES = ("gemm", "gemv", "communication")
# (start, length, name, stream, device): in any order, some of no length, streams at once
KERNEL = st.tuples(
    st.integers(0, LENGTH),
    st.integers(0, 9),
    st.integers(0, 2),
    st.integers(0, 3),
    st.integers(0, 1),
)
COPY = st.tuples(
    st.integers(0, LENGTH),
    st.integers(0, 9),
    st.sampled_from([CopyKind.HOST_TO_DEVICE, CopyKind.DEVICE_TO_HOST, CopyKind.WITHIN_DEVICE]),
    st.integers(1, 1000),
    st.integers(0, 1),
)
RANK = st.tuples(st.lists(KERNEL, min_size=1, max_size=15), st.lists(COPY, max_size=6))
DEVICES = (TracedDevice("cuda:0"), TracedDevice("cuda:1"))


def made(rank: int, rows: list, moved: list) -> Trace:  # type: ignore[type-arg]
    one = trace(
        names=NAMES,
        devices=DEVICES,
        kernels=kernels(*((a, a + n, name, -1, -1, dev, s) for a, n, name, s, dev in rows)),
        copies=copies(*((a, a + n, kind, size, 255, dev) for a, n, kind, size, dev in moved)),
    )
    return dataclasses.replace(one, rank=rank)


def marked(spans: list[tuple[int, int]]) -> set[int]:
    return {t for start, length in spans for t in range(start, start + length)}


@settings(deadline=None, max_examples=200)
@given(st.lists(RANK, min_size=1, max_size=3))
def test_busy_shares_sums_and_exposed_time(ranks) -> None:  # type: ignore[no-untyped-def]
    try:
        capture = capture_of([made(i, rows, moved) for i, (rows, moved) in enumerate(ranks)])
    except InputError:
        assume(False)  # two ranks came out alike, and are refused
    for rank, (rows, moved) in enumerate(ranks):
        worked = marked([(a, n) for a, n, *_ in (*rows, *moved)])
        for device, plain in enumerate(("cuda:0", "cuda:1")):
            label = plain if len(ranks) == 1 else f"rank {rank} {plain}"
            # Nothing that takes no time moves the window, yet what starts within it is counted.
            window = range(min(worked), max(worked) + 1) if worked else range(0)
            mine = [k for k in rows if k[4] == device and k[0] in window]
            copied = [c for c in moved if c[4] == device and c[0] in window]
            here = [k for k in capture.kernels if k.device == label]
            counted = {(k.kernel_class, k.name): k.launches for k in here if k.name in NAMES}
            assert counted == Counter((CLASSES[name], NAMES[name]) for _, _, name, *_ in mine)
            busy = marked([(a, n) for a, n, *_ in mine])
            shares = [
                s.value
                for s in capture.device_samples
                if s.device == label and s.name == "trace_kernel_busy"
            ]
            if busy:
                assert sum(shares) / len(shares) == pytest.approx(len(busy) / len(window))
            computing = marked([(a, n) for a, n, name, _, _ in mine if name != 2])
            moving = {
                "communication": marked([(a, n) for a, n, name, _, _ in mine if name == 2]),
                "copy, host to device": marked(
                    [(a, n) for a, n, kind, _, _ in copied if kind == CopyKind.HOST_TO_DEVICE]
                ),
                "copy, device to host": marked(
                    [(a, n) for a, n, kind, _, _ in copied if kind == CopyKind.DEVICE_TO_HOST]
                ),
            }
            for name, spans in moving.items():
                found = [k for k in here if name in (k.name, k.kernel_class)]
                assert sum(k.exposed_ns or 0 for k in found) == len(spans - computing) * US
