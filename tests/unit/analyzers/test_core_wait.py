"""Cores that others had: just past the threshold, just under it, and blind."""

from __future__ import annotations

import dataclasses
import json

import pytest
from capture_builders import MS, ON_CPU, ON_GPU, decodes, timed_linears
from derivation import faults

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.step.core_wait import CoreWait, core_wait
from stallscope.analyzers.step.host_means import host_mean
from stallscope.profiler.capture import Capture, DeviceSample
from stallscope.reports.json_report import render

STEPS = 60


def on_cores(
    longest: float,
    threads: float,
    own: float,
    others: float,
    stolen: float = 0.0,
    *,
    usable: float | None = 2.0,
    step_ms: float = 8.0,
) -> Capture:
    """Batch-1 decode of which 0.857 ms of each step are explained: weights 0.8, KV 0.057."""
    values = {
        "host_run_wait": longest,
        "host_run_wait_threads": threads,
        "host_cpu_cores": own,
        "host_neighbour_cores": others,
        "host_steal_cores": stolen,
    }
    end_ns = round(STEPS * step_ms * MS)
    return Capture(
        subject=ON_CPU,
        steps=decodes(STEPS, length_ms=step_ms, device_ns=round(step_ms * MS), host_ns=0),
        events=timed_linears(),
        device_samples=tuple(
            DeviceSample(end_ns, "host", name, value, "") for name, value in values.items()
        ),
        meta={"host": {"cpus": 2, "usable_cores": usable}},
    )


def found(capture: Capture) -> str:
    diagnosis = diagnose(capture)
    assert faults(json.loads(render(diagnosis))) == []
    return diagnosis.verdict.bottleneck


@pytest.mark.parametrize(
    ("seen", "displaced", "lost"),
    [
        # A neighbour on each of two cores: all of the waits are theirs; the longest is lost.
        (CoreWait(0.45, 0.8, 1.0, 1.0, 0.0, 2.0), 0.8, 0.45),
        # Eight threads of its own on two cores: 0.05 of 6 waits are others'.
        (CoreWait(0.75, 6.0, 1.95, 0.05, 0.0, 2.0), 0.05, 0.75 * 0.05 / 6),
        # A CPU quota of one core, which it fills: the others ran on cores that it could not have.
        (CoreWait(0.5, 1.0, 1.0, 3.0, 0.0, 1.0), 0.0, 0.0),
        # One core of 64 taken, and 63 spin for the thread that waits for it.
        (CoreWait(0.5, 0.5, 63.5, 0.5, 0.0, 64.0), 0.5, 0.5),
        # The hypervisor took 0.4 of 1.6 busy cores.
        (CoreWait(0.0, 0.0, 1.2, 0.0, 0.4, 2.0), 0.0, 0.25),
        # Both: 0.2 waited, and of the other 0.8 the hypervisor took 0.3 of 1.5 cores.
        (CoreWait(0.2, 0.2, 1.0, 0.2, 0.3, 2.0), 0.2, 0.2 + 0.8 * 0.2),
        (CoreWait(0.0, 0.0, 0.0, 0.0, 0.0, 2.0), 0.0, 0.0),
    ],
)
def test_what_others_took(seen: CoreWait, displaced: float, lost: float) -> None:
    assert seen.displaced == pytest.approx(displaced)
    assert seen.lost == pytest.approx(lost)


@pytest.mark.parametrize(
    ("longest", "step_ms", "bottleneck"),
    [
        (0.251, 8.0, "device"),
        (0.249, 8.0, "undetermined"),
        # 0.857 of 4 ms is 0.214 of the step: 1.25 times that is 0.268.
        (0.27, 4.0, "device"),
        (0.265, 4.0, "undetermined"),
        # 0.857 of 2 ms is 0.43: memory is read as fast as it can be in that.
        (0.5, 2.0, "bandwidth"),
    ],
)
def test_it_must_be_large_and_clear(longest: float, step_ms: float, bottleneck: str) -> None:
    assert found(on_cores(longest, 0.5, 1.0, 1.0, step_ms=step_ms)) == bottleneck


@pytest.mark.parametrize(
    ("stolen", "bottleneck"),
    [(0.41, "device"), (0.39, "undetermined")],  # of 1.61 and 1.59 busy cores: 0.255 and 0.245
)
def test_a_hypervisor_takes_cores_too(stolen: float, bottleneck: str) -> None:
    assert found(on_cores(0.0, 0.0, 1.2, 0.0, stolen)) == bottleneck


def test_threads_of_its_own_are_no_neighbours() -> None:
    assert found(on_cores(0.75, 6.0, 1.95, 0.05)) == "undetermined"
    assert found(on_cores(0.75, 6.0, 1.0, 1.0, usable=1.0)) == "undetermined"  # its quota


@pytest.mark.parametrize(
    "name", ["run_wait", "run_wait_threads", "cpu_cores", "neighbour_cores", "steal_cores"]
)
def test_without_one_of_the_samples_nothing_is_claimed(name: str) -> None:
    whole = on_cores(0.5, 0.5, 1.0, 1.0)
    rest = tuple(s for s in whole.device_samples if s.name != f"host_{name}")
    blind = dataclasses.replace(whole, device_samples=rest)
    assert core_wait(whole) is not None
    assert core_wait(blind) is None
    diagnosis = diagnose(blind)
    assert diagnosis.verdict.bottleneck == "undetermined"
    assert not any(m.name.startswith("core_wait") for m in diagnosis.measures)


def test_unknown_cores_and_a_gpu_say_nothing() -> None:
    assert core_wait(on_cores(0.5, 0.5, 1.0, 1.0, usable=None)) is None
    gpu = dataclasses.replace(on_cores(0.5, 0.5, 1.0, 1.0), subject=ON_GPU)
    assert core_wait(gpu) is None
    assert core_wait(Capture(ON_CPU)) is None


def told(stolen: float = 0.0) -> Diagnosis:
    return diagnose(on_cores(0.5, 0.8, 1.0, 0.9 - stolen, stolen))


def test_the_report_says_who_has_the_cores_and_what_helps() -> None:
    found = told()
    assert found.verdict.finding == "cores-taken"
    assert found.verdict.sentence.startswith(
        "Others take the cores that the step needs: a thread of this run was ready and had no core "
        "50 % of the time, while other processes kept 0.9 of its 2 cores busy: at least 50 % of "
        "the step's time is theirs; next is bandwidth at 11 %."
    )
    waited = next(m for m in found.measures if m.name == "core_wait")
    assert (waited.value, waited.provenance, waited.side) == (pytest.approx(0.5), "bound", "lower")
    assert "cores of its own" in found.remedies[0].action
    assert [w.action for w in found.wont_help] == ["more threads", "tuning the engine"]
    assert [link.cause for link in found.verdict.chain] == [
        "others keep the cores busy that the run needs"
    ]


def test_against_a_hypervisor_another_machine_comes_first() -> None:
    found = told(stolen=0.6)
    assert (
        "0.3 of its 2 cores busy and the hypervisor gave 0.6 of its 2 cores to other machines "
        "(steal): at least" in found.verdict.sentence
    )
    alone = diagnose(on_cores(0.0, 0.0, 1.2, 0.0, 0.41)).verdict.sentence
    assert alone.startswith(
        "Others take the cores that the step needs: the hypervisor gave 0.4 of its 2 cores to "
        "other machines (steal): at least 25 % of the step's time is theirs"
    )
    assert "hypervisor" in found.remedies[0].action
    assert len(found.remedies) == 3


def test_short_windows_are_judged_by_the_samples_around_them() -> None:
    """Three windows of 160 ms, and the one sample at their end speaks for all of them."""
    windows = told().windows
    assert [w.bottleneck for w in windows] == ["device"] * 3


def sampled(*rows: tuple[int, float]) -> Capture:
    return Capture(device_samples=tuple(DeviceSample(t, "host", "x", v, "") for t, v in rows))


def test_a_sample_speaks_for_the_time_since_the_one_before() -> None:
    second = 1_000_000_000
    rows = sampled((second, 0.9), (2 * second, 0.3), (3 * second, 0.6))
    # A quarter of the first's second, all of the second's, half of the third's.
    span = Span(3 * second // 4, 5 * second // 2)
    by_hand = (0.25 * 0.9 + 1 * 0.3 + 0.5 * 0.6) / 1.75
    assert host_mean(rows, "x", span) == pytest.approx(by_hand)
    # The first sample speaks for half a second; 1 of 3 s is too little.
    assert host_mean(sampled((second, 0.9)), "x", Span(second // 2, second)) == 0.9
    assert host_mean(sampled((second, 0.9)), "x", Span(0, second)) == 0.9
    assert host_mean(sampled((second, 0.9)), "x", Span(0, second + 1)) is None
    # No sample speaks for more than five seconds: after a gap the rest is not known.
    gap = sampled((second, 0.9), (21 * second, 0.1))
    assert host_mean(gap, "x", Span(second, 21 * second)) is None
    assert host_mean(gap, "x", Span(16 * second, 21 * second)) == pytest.approx(0.1)
    assert host_mean(rows, "y", span) is None
