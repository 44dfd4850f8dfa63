"""What a CPU run's threads waited for cores, and who had these, as measures."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.load.span import Span
from stallscope.analyzers.step.core_wait import core_wait
from stallscope.analyzers.step.host_means import host_mean
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import BoundSide, Measure, Provenance

CORE_MEASURES: dict[str, tuple[str, str]] = {
    "core_wait": ("fraction", "of the time, in which others had the cores that the run needed"),
    "core_wait_longest": ("fraction", "of the time, the thread waited for a core that waited most"),
    "core_wait_threads": ("threads", "mean threads of the run that waited for a core"),
    "cores_usable": ("cores", "cores that the run may fill, by its affinity and its group's quota"),
    "cores_own": ("cores", "cores that the recording process kept busy"),
    "cores_others": ("cores", "cores of those it may use that other processes kept busy"),
    "cores_stolen": ("cores", "cores of those it may use that the hypervisor gave to others"),
    "involuntary_switches": ("1/s", "threads put off their core a second, although they had work"),
    "cpu_pressure": ("fraction", "of the time, some task of the machine waited for a core (PSI)"),
}
_DELAY = "schedstat of each thread, over the run"
_TIMES = "/proc/stat of the CPUs that the process may use, over the run"


def core_measures(capture: Capture, span: Span) -> Iterator[Measure]:
    """Yield them; none on a GPU, or where the recording could not tell."""
    found = core_wait(capture, span)
    if found is None:
        return
    least = "core_wait_longest × (waits that others' time explains ÷ all waits), and steal"
    yield _measure("core_wait", found.lost, "bound", least, side="lower")
    yield _measure("core_wait_longest", found.longest, "measured", _DELAY)
    yield _measure("core_wait_threads", found.threads, "measured", _DELAY)
    yield _measure("cores_usable", found.usable, "measured", "affinity and CPU quota at the start")
    yield _measure("cores_own", found.own, "measured", "the process's CPU time, over the run")
    yield _measure("cores_others", found.others, "measured", _TIMES)
    yield _measure("cores_stolen", found.stolen, "measured", _TIMES)
    switches = host_mean(capture, "host_involuntary_switches", span)
    if switches is not None:
        yield _measure("involuntary_switches", switches, "measured", "getrusage, over the run")
    pressure = host_mean(capture, "psi_cpu_some", span)
    if pressure is not None:
        yield _measure("cpu_pressure", pressure, "measured", "/proc/pressure/cpu, avg10")


def _measure(
    name: str, value: float, provenance: Provenance, source: str, *, side: BoundSide | None = None
) -> Measure:
    return Measure(name, value, CORE_MEASURES[name][0], provenance, source, side)
