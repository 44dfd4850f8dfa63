"""What to do where others take the cores that a run on the CPU needs."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.result import Remedy, WontHelp
from stallscope.profiler.evidence import Measure

_WORTH = 0.1  # cores: who takes less is not worth a remedy
_CHECK = "run again: core_wait falls to nearly 0, and TPOT with it"
_OWN = Remedy(
    "give the run cores of its own: stop what shares them, or move it to other cores",
    {
        "any": "taskset -c or numactl --physcpubind for both; Kubernetes: cpu-manager-policy "
        "static, with requests = limits in whole cores",
    },
    None,
    _CHECK,
    ("core_wait", "cores_others"),
    cost="cores that nothing else may use",
)
_SECOND = Remedy(
    "where the cores must be shared, let the others come second",
    {"any": "nice -n 19 or chrt --idle 0 for the others; cpu.weight of their control group"},
    None,
    _CHECK,
    ("core_wait", "core_wait_threads", "cores_others"),
    cost="the others' work takes longer",
)
_NOT_SHARED = Remedy(
    "ask for a machine whose cores the hypervisor does not share out",
    {"any": "an instance type without shared or burstable CPUs"},
    None,
    "cores_stolen falls to 0 in a new run",
    ("cores_stolen",),
    cost="a dearer machine",
)
CORES_WONT_HELP = (
    WontHelp("more threads", "they would wait for the same cores, and for each other"),
    WontHelp("tuning the engine", "what it lacks is time on its cores"),
)


def cores_back(found: Mapping[str, Measure]) -> tuple[Remedy, ...]:
    """List what helps, by who has most of the cores: other processes, or other machines."""
    stolen, others = found.get("cores_stolen"), found.get("cores_others")
    if stolen is None or others is None or stolen.value < _WORTH:
        return (_OWN, _SECOND)
    by_process = () if others.value < _WORTH else (_OWN, _SECOND)
    is_first = stolen.value > others.value
    return (_NOT_SHARED, *by_process) if is_first else (*by_process, _NOT_SHARED)
