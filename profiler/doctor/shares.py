"""What of the machine this process may use: CPU quota, memory limit, container."""

from __future__ import annotations

import os
import re

from stallscope.profiler.cgroup import tightest_cpu_quota, tightest_memory_limit
from stallscope.profiler.doctor.surroundings import Surroundings, below, why
from stallscope.profiler.evidence import Check

_GROUPS = "/proc/self/cgroup"
_MOUNT = "/sys/fs/cgroup"
_GIB = 1 << 30
_ENGINES = r"docker|kubepods|containerd|libpod|lxc|cri-o"


def cpu_check(place: Surroundings) -> Check:
    """Check the CPU quota and the cores that this process may run on against the machine's."""
    lost = "steady step times: beyond its quota a process is stopped for up to 0.1 s"
    cores = os.cpu_count() or 1
    mine = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else cores
    hidden = _hidden(place, "cpu")
    if hidden is not None:
        return Check("CPU quota", "unknown", hidden, lost, "look at the container's --cpus")
    quota = tightest_cpu_quota(below(place, _GROUPS), below(place, _MOUNT))
    reason = f"{'no quota' if quota is None else f'{quota:g} cores'}, may run on {mine} of {cores}"
    if mine == cores and (quota is None or quota >= cores):
        return Check("CPU quota", "ok", reason)
    return Check("CPU quota", "limited", reason, lost, "raise --cpus or --cpuset-cpus")


def memory_check(place: Surroundings) -> Check:
    """Check the memory limit against the machine's memory."""
    lost = "memory: beyond the limit the kernel ends the process without an error message"
    hidden = _hidden(place, "memory")
    if hidden is not None:
        return Check("memory limit", "unknown", hidden, lost, "look at the container's --memory")
    try:
        meminfo = below(place, "/proc/meminfo").read_text()
        total = int(re.findall(r"^MemTotal:\s*(\d+) kB", meminfo, re.MULTILINE)[0]) << 10
    except (OSError, IndexError):
        reason = "/proc/meminfo does not tell the machine's memory"
        return Check("memory limit", "unknown", reason, lost, "look at free -g")
    limit = tightest_memory_limit(below(place, _GROUPS), below(place, _MOUNT))
    of = f"the machine's {total / _GIB:.1f} GiB"
    if limit is None or limit.limit_bytes >= total:
        return Check("memory limit", "ok", f"none below {of}")
    reason = f"{limit.limit_bytes / _GIB:.1f} GiB of {of} ({limit.folder})"
    return Check("memory limit", "limited", reason, lost, "raise the container's --memory")


def container_check(place: Surroundings) -> Check:
    """Check for signs of a container."""
    lost = "other processes on the GPU: NVML names them by numbers of the host, or not at all"
    fix = "docker run --gpus all --pid=host --cap-add SYS_ADMIN …"
    signs = [name for name in ("/.dockerenv", "/run/.containerenv") if below(place, name).exists()]
    signs += [f"${n}" for n in ("container", "KUBERNETES_SERVICE_HOST") if place.environ.get(n)]
    try:
        groups = below(place, "/proc/1/cgroup").read_text()
    except OSError as error:
        groups = None
        unread = why(error)
    if groups and (engine := re.search(_ENGINES, groups)):
        signs.append(f"{engine[0]} in /proc/1/cgroup")
    if signs:
        return Check("container", "limited", f"signs of one: {', '.join(signs)}", lost, fix)
    if groups is None:
        return Check("container", "unknown", f"cannot tell: {unread}", lost, fix)
    return Check("container", "ok", "no sign of one")


def _hidden(place: Surroundings, controller: str) -> str | None:
    """Say why limits cannot be seen, so that "none" is only said where one would be."""
    try:
        below(place, _GROUPS).read_text()
    except OSError as error:
        return f"cannot tell: {why(error)}"
    mount = below(place, _MOUNT)
    if (mount / "cgroup.controllers").exists() or (mount / controller).is_dir():
        return None
    return f"cannot tell: {mount} shows no {controller} controller"
