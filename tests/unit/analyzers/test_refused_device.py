"""A refusal of a device of another size than the one that is named elsewhere."""

from __future__ import annotations

import pytest
from capture_builders import event

from stallscope.analyzers.refused_device import other_device_note
from stallscope.profiler.capture import Capture
from stallscope.profiler.devices import load_device
from stallscope.profiler.spec import Subject

GIB = 1 << 30


@pytest.mark.parametrize(
    ("total", "is_other"),
    # 80 GiB: 79.15 is what torch shows of it; 0.9 × 80 = 72 is the edge.
    [(79.15, False), (72.1, False), (71.9, True), (23.64, True), (141.0, True), (None, False)],
)
def test_sizes_more_than_a_tenth_apart_are_different_devices(
    total: float | None, is_other: bool
) -> None:
    data = {} if total is None else {"total_bytes": round(total * GIB)}
    device = load_device("a100-sxm4-80gb")
    assert device.memory_bytes == 80 * GIB
    subject = Subject(device=device)
    notes = other_device_note(Capture(subject=subject, events=(event("oom", **data),)))
    assert bool(notes) is is_other
    if total == 23.64:
        assert "of a device of 23.6 GiB, and a100-sxm4-80gb has 80.0 GiB" in notes[0]


def test_nothing_is_said_without_a_device_or_a_refusal() -> None:
    refused = event("oom", total_bytes=GIB)
    assert other_device_note(Capture(events=(refused,))) == ()
    device = Subject(device=load_device("a100-sxm4-80gb"))
    assert other_device_note(Capture(subject=device)) == ()
