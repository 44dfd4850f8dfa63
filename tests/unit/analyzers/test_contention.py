"""A full machine that others use too: said in the notes, and named beside the best class."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import ON_CPU, ON_GPU, decodes, samples, timed_linears

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.step.contention import contention
from stallscope.profiler.capture import Capture


def on_two_cores(own: float, other: float, step_ms: float = 4.0) -> Capture:
    """Batch-1 decode on a two-core machine; its linears take 0.8 ms of each step."""
    return Capture(
        subject=ON_CPU,
        steps=decodes(60, length_ms=step_ms, device_ns=round(step_ms * 1e6), host_ns=0),
        events=timed_linears(),
        device_samples=(
            *samples("host_cpu_cores", own, own, device="host"),
            *samples("host_other_cpu_cores", other, other, device="host"),
        ),
        meta={"host": {"cpus": 2}},
    )


@pytest.mark.parametrize(
    ("own", "other", "share"),
    [
        (1.5, 0.5, 0.25),
        (1.61, 0.2, 0.1),  # 0.905 of the cores in use, others have exactly a tenth
        (1.79, 0.19, None),  # full, but others take less than a tenth
        (1.2, 0.5, None),  # others work, but cores were free
    ],
)
def test_only_others_on_a_full_machine_count(own: float, other: float, share: float | None) -> None:
    assert contention(on_two_cores(own, other)) == (None if share is None else pytest.approx(share))


def test_without_counters_nothing_is_said() -> None:
    capture = on_two_cores(1.0, 1.0)
    assert contention(dataclasses.replace(capture, device_samples=())) is None
    assert contention(dataclasses.replace(capture, meta={})) is None


def test_an_unexplained_step_on_a_contended_machine_may_be_the_device() -> None:
    """0.8 ms of weights in 4 ms: 20 % explained; the rest may be the others' work."""
    alone, contended = diagnose(on_two_cores(1.9, 0.05)), diagnose(on_two_cores(1.0, 0.95))
    assert alone.verdict.between == ("bandwidth", "host")
    assert alone.notes == ()
    assert contended.verdict.bottleneck == "undetermined"
    assert contended.verdict.between == ("bandwidth", "device")
    assert "run again with the machine to itself" in contended.verdict.sentence
    assert "48 % of this machine's cores" in contended.notes[0]


def test_a_clear_limit_stands_on_a_contended_machine_too() -> None:
    diagnosis = diagnose(on_two_cores(1.0, 0.95, step_ms=1.0))  # 0.8 + 0.06 of 1 ms
    assert diagnosis.verdict.bottleneck == "bandwidth"
    assert len(diagnosis.notes) == 1


def test_a_gpu_is_not_slowed_by_others_on_the_cpu() -> None:
    """0.5 ms of weights and KV in 4 ms: the rest may be the host's, never the device's."""
    found = diagnose(dataclasses.replace(on_two_cores(1.0, 0.95), subject=ON_GPU, events=()))
    assert found.verdict.between == ("bandwidth", "host")
    assert "the host's part of step times may hold that too" in found.notes[0]


def test_cpus_are_those_whose_time_is_counted() -> None:
    """A container of 2 CPUs on a machine of 64, on which others keep 40 busy: 24 stand free."""
    counted = {"host": {"cpus": 2, "counted_cpus": 64}}
    contained = dataclasses.replace(on_two_cores(2.0, 40.0), meta=counted)
    assert contention(contained) is None
    full = dataclasses.replace(on_two_cores(2.0, 64.5), meta=counted)  # ticks are coarse
    assert contention(full) == 1.0
    # Without that count 40 of 2 CPUs say nothing, least of all 2000 %.
    assert contention(on_two_cores(2.0, 40.0)) is None
