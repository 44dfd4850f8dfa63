"""Copies that a loop marked: the link's time, and none of the host's."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, ON_GPU, decodes, event, kernel, samples

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.step.budget import StepCost, cost_steps
from stallscope.analyzers.step.copies import with_copies
from stallscope.analyzers.step.trace import with_trace
from stallscope.profiler.capture import Capture, Event


def copy(
    at_ms: float, length_ms: float, size_bytes: int = 1000, *, in_forward: bool = False
) -> Event:
    length_ns = round(length_ms * MS)
    return event("copy", at_ms, bytes=size_bytes, length_ns=length_ns, in_forward=int(in_forward))


def ms(costs: tuple[StepCost, ...]) -> list[tuple[float, float | None]]:
    """Host and copied time of each step."""
    return [
        (round(c.host_s * 1e3, 6), None if c.copied_s is None else round(c.copied_s * 1e3, 6))
        for c in costs
    ]


# Two steps of 10 ms, 6 of them in the forward call.
TWO = decodes(2, 10, device_ns=6 * MS, host_ns=4 * MS)


def test_a_copy_outside_the_forward_call_leaves_the_hosts_time() -> None:
    costs = cost_steps(TWO, None)
    seen = Capture(steps=TWO, events=(copy(1, 3), copy(11, 1), copy(12, 1.5)))
    assert ms(with_copies(costs, seen)) == [(1, 3), (1.5, 2.5)]
    # One that spans two steps belongs to both; two at once take their time once.
    seen = Capture(steps=TWO, events=(copy(8, 4), copy(9, 2)))
    assert ms(with_copies(costs, seen)) == [(2, 2), (2, 2)]
    # Inside the forward call it was never the host's.
    seen = Capture(steps=TWO, events=(copy(5, 3, in_forward=True),))
    assert ms(with_copies(costs, seen)) == [(4, 3), (4, 0)]


def test_a_copy_in_the_gap_before_a_step_belongs_to_that_step() -> None:
    """Two steps with 5 ms between them, of which a copy takes 2."""
    rows = (TWO[0], TWO[1]._replace(start_ns=15 * MS, end_ns=25 * MS))
    seen = Capture(steps=rows, events=(copy(11, 2),))
    assert ms(with_copies(cost_steps(rows, None), seen)) == [(4, 0), (7, 2)]


def test_without_marks_or_with_broken_ones_nothing_changes() -> None:
    costs = cost_steps(TWO, None)
    assert ms(with_copies(costs, Capture(steps=TWO))) == [(4, None), (4, None)]
    broken = Capture(steps=TWO, events=(event("copy", 1, bytes=9), copy(1, 0)))
    assert ms(with_copies(costs, broken)) == [(4, None), (4, None)]
    assert diagnose(broken).notes == ("1 copy event without length_ns left out.",)


def test_a_kernel_trace_goes_before_marks() -> None:
    """The trace saw no copy: marks do not add one."""
    traced = Capture(
        ON_GPU,
        steps=TWO,
        events=(copy(1, 3),),
        kernels=(kernel("gemv", 12),),
        device_samples=samples("trace_kernel_busy", 0.6),
    )
    costs = with_trace(cost_steps(TWO, None), traced)
    assert ms(with_copies(costs, traced)) == [(4, None), (4, None)]


def copying(length_ms: float, size_bytes: int = 2_000_000) -> Capture:
    """60 steps of 10 ms; the forward call takes 2, and a copy some of the other 8."""
    rows = decodes(60, 10, device_ns=2 * MS, host_ns=8 * MS)
    return Capture(
        ON_GPU, steps=rows, events=tuple(copy(10 * i, length_ms, size_bytes) for i in range(60))
    )


@pytest.mark.parametrize(
    ("length_ms", "bottleneck"),
    [
        (7.0, "interconnect"),  # 0.7 of the step, and 0.1 the host's
        (4.5, "interconnect"),  # 0.45 against 0.35: 1.286 times
        (4.4, "undetermined"),  # 0.44 against 0.36: 1.222 times, under 1.25
        (3.5, "host"),  # 0.45 against 0.35
    ],
)
def test_the_larger_of_link_and_host_is_named(length_ms: float, bottleneck: str) -> None:
    assert diagnose(copying(length_ms)).verdict.bottleneck == bottleneck


def test_the_report_tells_how_much_was_copied_and_how_fast() -> None:
    found = diagnose(copying(7.0, 14_000_000))  # 14 MB in 7 ms: 2 GB/s
    assert found.verdict.finding == "step-interconnect"
    assert "the loop waits for 14 MB of copies a step at 2 GB/s" in found.verdict.sentence
    measures = {m.name: m.value for m in found.measures}
    assert measures["copies_marked"] == pytest.approx(0.7)
    assert measures["copy_bytes_per_step"] == pytest.approx(14e6)
    assert measures["copy_rate"] == pytest.approx(2e9)
    assert measures["host_per_step"] == pytest.approx(1e-3)
    (transfer,) = [p for p in found.phases[-1].budget if p.part == "transfer"]
    assert (transfer.time_s, transfer.provenance) == (pytest.approx(0.42), "measured")
    assert "keep on the device" in found.remedies[0].action
    assert found.remedies[0].evidence == ("copies_marked", "copy_bytes_per_step", "copy_rate")
    assert found.verdict.chain[0].effect == "kernels wait for copies"
    assert not any("transfer" in n.what for n in found.not_observable)


def test_a_copy_of_a_warm_up_is_not_counted() -> None:
    run = copying(7.0)
    warm = run.steps[0]._replace(id=99, warmup=True)
    later = dataclasses.replace(run, steps=(warm, *run.steps[1:]))
    measures = {m.name: m.value for m in diagnose(later).measures}
    assert measures["copy_bytes_per_step"] == pytest.approx(2_000_000)
    assert measures["copies_marked"] == pytest.approx(0.7)
