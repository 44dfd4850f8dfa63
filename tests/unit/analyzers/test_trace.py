"""A kernel trace: idle inside the forward call is the host's, exposed transfers are their own."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, ON_GPU, decodes, samples, step

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import BudgetPart, Diagnosis, PhaseBudget
from stallscope.profiler.capture import Capture, Event, KernelSummary, Step


def kernel(
    kind: str,
    busy_ms: float,
    phase: str = "decode",
    exposed_ms: float | None = None,
    device: str = "gpu0",
) -> KernelSummary:
    exposed = None if exposed_ms is None else round(exposed_ms * MS)
    return KernelSummary(device, 0, phase, kind, kind, 1, round(busy_ms * MS), exposed)


def traced(steps: tuple[Step, ...], *kernels: KernelSummary, busy: float) -> Capture:
    rows = samples("trace_kernel_busy", busy)
    return Capture(subject=ON_GPU, steps=steps, kernels=kernels, device_samples=rows)


# The traced window is that of the steps.
WINDOW = (Event(0, "trace_figure", None, {"name": "trace_window", "value": 0.2}),)


def parts(budget: PhaseBudget) -> dict[str, BudgetPart]:
    return {p.part: p for p in budget.budget}


def phases(found: Diagnosis) -> dict[str, dict[str, BudgetPart]]:
    return {p.phase: parts(p) for p in found.phases}


def test_idle_inside_the_forward_call_is_the_hosts() -> None:
    """100 steps of 2 ms, all of it in the forward call, kernels in 0.7 ms of each."""
    steps = decodes(100, 2.0, device_ns=2 * MS, host_ns=0)
    found = diagnose(traced(steps, kernel("gemv", 70), busy=0.35))
    host = phases(found)["decode"]["host"]
    assert host.time_s == pytest.approx(100 * 0.0013)
    assert (host.provenance, host.side) == ("measured", None)
    assert (found.verdict.bottleneck, found.verdict.next_limit) == ("host", "bandwidth")
    # 0.5 ms of weights and KV in 2 ms: nothing but the trace could tell.
    blind = diagnose(dataclasses.replace(traced(steps, busy=0.35), device_samples=()))
    assert blind.verdict.bottleneck == "undetermined"
    assert "nsys" in blind.verdict.sentence
    assert "nsys" not in found.verdict.sentence


def test_idle_time_outside_the_forward_call_counts_once() -> None:
    """Of 2 ms, 1.2 outside the forward call; the device is idle for 1.5 in all."""
    steps = decodes(100, 2.0, device_ns=round(0.8 * MS), host_ns=round(1.2 * MS))
    found = diagnose(traced(steps, kernel("gemv", 50), busy=0.25))
    assert phases(found)["decode"]["host"].time_s == pytest.approx(0.150)
    assert [p.is_host_traced for p in found.phases] == [True]
    assert [p.is_host_traced for p in diagnose(Capture(ON_GPU, steps=steps)).phases] == [False]
    # A device that works on through the host's time takes none of it away.
    busy = diagnose(traced(steps, kernel("gemv", 180), busy=0.9))
    assert phases(busy)["decode"]["host"].time_s == pytest.approx(0.120)


def test_each_phase_has_its_own_idle_time() -> None:
    """A prefill of 100 ms full of kernels, 100 decode steps of 1 ms of which kernels take 0.5."""
    work = {"prefill_tokens": 64, "context_tokens": 64}
    first = step(0, 0, 100, phase="prefill", device_ns=100 * MS, host_ns=0, **work)
    rest = tuple(step(1 + i, 100 + i, 1, device_ns=MS, host_ns=0) for i in range(100))
    kernels = (kernel("gemm", 100, "prefill"), kernel("gemv", 50))
    found = diagnose(traced((first, *rest), *kernels, busy=0.75))
    assert phases(found)["prefill"]["host"].time_s == pytest.approx(0.0, abs=1e-9)
    assert phases(found)["decode"]["host"].time_s == pytest.approx(0.050)
    assert phases(found)["all"]["host"].time_s == pytest.approx(0.050)
    # A trace of two decode steps alone cannot tell the phases apart: each idles as the mean does.
    part = diagnose(traced((first, *rest), kernel("gemv", 1), busy=0.75))
    assert phases(part)["prefill"]["host"].time_s == pytest.approx(0.025)
    assert phases(part)["decode"]["host"].time_s == pytest.approx(0.025)


def test_exposed_communication_and_copies_are_measured() -> None:
    """Kernels fill 1.2 of 2 ms, all-reduces 0.4 of that alone; copies fill 0.6 more."""
    steps = decodes(100, 2.0, device_ns=2 * MS, host_ns=0)
    kernels = (
        kernel("gemv", 70),
        kernel("communication", 50, exposed_ms=40),
        kernel("copy", 60, exposed_ms=60),
    )
    # The rows hold 180 ms; at 0.9 their window is the steps' 200 ms.
    found = phases(diagnose(traced(steps, *kernels, busy=0.9)))["decode"]
    assert found["communication"].time_s == pytest.approx(0.040)
    assert found["transfer"].time_s == pytest.approx(0.060)
    assert found["communication"].provenance == found["transfer"].provenance == "measured"
    # Idle for 10 %, all of which copies fill.
    assert found["host"].time_s == pytest.approx(0.0, abs=1e-9)


def test_exposed_copies_outside_the_forward_call_are_not_the_hosts() -> None:
    """Of 2 ms, 1.2 outside the forward call: 0.9 of that a copy, 0.2 idle, 0.1 a kernel."""
    steps = decodes(100, 2.0, device_ns=round(0.8 * MS), host_ns=round(1.2 * MS))
    rows = (kernel("gemv", 90), kernel("copy", 90, exposed_ms=90))
    found = phases(diagnose(dataclasses.replace(traced(steps, *rows, busy=0.45), events=WINDOW)))
    assert found["decode"]["transfer"].time_s == pytest.approx(0.090)
    # max(idle for 1 - 0.45 - 0.45 of 200 ms, 120 - 90 ms): a kernel ran in 10 of these.
    assert found["decode"]["host"].time_s == pytest.approx(0.030)
    # Copies in the forward call leave idle time outside it to the host: max(110, 120 - 90).
    late = (kernel("gemv", 0), kernel("copy", 90, exposed_ms=90))
    found = phases(diagnose(dataclasses.replace(traced(steps, *late, busy=0.0), events=WINDOW)))
    assert found["decode"]["host"].time_s == pytest.approx(0.110)


def test_unknown_exposure_stays_unknown_and_a_trace_without_copies_has_none() -> None:
    steps = decodes(100, 2.0, device_ns=2 * MS, host_ns=0)
    blind = phases(diagnose(traced(steps, kernel("copy", 180), busy=0.9)))["decode"]
    assert (blind["transfer"].time_s, blind["transfer"].side) == (0.0, "lower")
    none = phases(diagnose(traced(steps, kernel("gemv", 180), busy=0.9)))["decode"]
    assert (none["transfer"].time_s, none["transfer"].provenance) == (0.0, "measured")


def test_several_devices_pass_their_time_at_once() -> None:
    steps = decodes(100, 2.0, device_ns=2 * MS, host_ns=0)
    both = tuple(kernel("gemv", 100, device=d) for d in ("gpu0", "gpu1"))
    found = diagnose(traced(steps, *both, busy=0.5))
    assert phases(found)["decode"]["host"].time_s == pytest.approx(0.1)


def test_steps_without_length() -> None:
    found = diagnose(traced(decodes(3, 0.0), kernel("gemv", 1), busy=0.5))
    assert found.verdict.bottleneck in ("undetermined", "bandwidth")
