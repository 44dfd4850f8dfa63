"""The machine: huge pages, clocks, pressure figures, the CPU's governor."""

from __future__ import annotations

import re
import time

from stallscope.profiler.doctor.surroundings import Surroundings, below, why
from stallscope.profiler.evidence import Check

_THP = "/sys/kernel/mm/transparent_hugepage/enabled"
_SOURCE = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
_SLOW_CLOCK_NS = 1_000  # hpet and acpi_pm take microseconds, tsc tens of nanoseconds
_READS = 1_000


def huge_pages_check(place: Surroundings) -> Check:
    """Check whether `run` gets the huge pages that it asks for."""
    lost = "up to a third of the CPU's memory bandwidth in stallscope run"
    fix = f"echo madvise | sudo tee {_THP}"
    try:
        text = below(place, _THP).read_text().strip()
    except OSError as error:
        return Check("huge pages", "unknown", f"cannot tell: {why(error)}", lost, fix)
    mode = re.search(r"\[(\w+)\]", text)
    if mode is None or mode[1] not in ("always", "madvise", "never"):
        return Check("huge pages", "unknown", f"{_THP} says {text!r}", lost, fix)
    if mode[1] == "never":
        return Check("huge pages", "missing", "the kernel's mode is never", lost, fix)
    asked = place.environ.get("THP_MEM_ALLOC_ENABLE", "1")
    if mode[1] == "madvise" and asked != "1":
        reason = f"mode madvise, but THP_MEM_ALLOC_ENABLE={asked} keeps torch from asking"
        return Check("huge pages", "limited", reason, lost, "unset THP_MEM_ALLOC_ENABLE")
    return Check("huge pages", "ok", f"mode {mode[1]}; run asks for them (THP_MEM_ALLOC_ENABLE=1)")


def clock_check(place: Surroundings) -> Check:
    """Measure the step and the cost of the clock that all times come from."""
    cost_ns, step_ns = _measured_clock()
    try:
        source = below(place, _SOURCE).read_text().strip()
    except OSError:
        source = "not visible"
    reason = f"a reading takes {cost_ns:.0f} ns, steps of {step_ns} ns, clock source {source}"
    if cost_ns <= _SLOW_CLOCK_NS:
        return Check("clock", "ok", reason)
    lost = "precision: steps of a small model are charged for the clock's own time"
    return Check("clock", "limited", reason, lost, f"echo tsc | sudo tee {_SOURCE}")


def pressure_check(place: Surroundings) -> Check:
    """Check whether the kernel tells how long tasks waited."""
    lost = "how long any task of the machine waits for CPU, memory or disk"
    fix = "boot a kernel of 4.20 or later with psi=1"
    shares = []
    for resource in ("cpu", "memory", "io"):
        file = below(place, f"/proc/pressure/{resource}")
        try:
            found = re.search(r"^some avg10=([\d.]+)", file.read_text(), re.MULTILINE)
        except OSError as error:
            return Check("pressure (PSI)", "missing", why(error), lost, fix)
        if found is None:
            return Check("pressure (PSI)", "unknown", f"{file} has no line some", lost, fix)
        shares.append(f"{resource} {float(found[1]):g} %")
    reason = f"of the last 10 s some task waited for {', '.join(shares)}"
    return Check("pressure (PSI)", "ok", reason)


def governor_check(place: Surroundings) -> Check:
    """Check who sets the CPU's frequency."""
    lost = "steady step times on the CPU: its clock follows the load"
    cores = below(place, "/sys/devices/system/cpu").glob("cpu[0-9]*/cpufreq/scaling_governor")
    try:
        governors = sorted({file.read_text().strip() for file in cores})
    except OSError as error:
        return Check("CPU governor", "unknown", why(error), lost, "look on the host")
    if not governors:
        reason = "no cpufreq is visible, as in most virtual machines"
        return Check("CPU governor", "unknown", reason, lost, "look on the host: cpupower info")
    if governors == ["performance"]:
        return Check("CPU governor", "ok", "performance, on every core that shows one")
    fix = "sudo cpupower frequency-set -g performance"
    return Check("CPU governor", "limited", ", ".join(governors), lost, fix)


def _measured_clock() -> tuple[float, int]:
    """Return the cost of a reading (the best of several series) and the smallest step seen."""
    costs, steps = [], []
    for _ in range(10):
        readings = [time.perf_counter_ns() for _ in range(_READS)]
        costs.append((readings[-1] - readings[0]) / (_READS - 1))
        pairs = zip(readings, readings[1:], strict=False)
        steps += [step for a, b in pairs if (step := b - a) > 0]
    return min(costs), min(steps, default=0)
