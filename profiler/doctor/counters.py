"""Nsight Compute, and who may read the GPU's performance counters."""

from __future__ import annotations

import re

from stallscope.profiler.doctor.surroundings import Surroundings, below, why
from stallscope.profiler.doctor.tools import NCU, find_tool
from stallscope.profiler.evidence import Check

_NAME = "GPU counters"
_LOST = "SM and DRAM throughput: ncu and nsys --gpu-metrics-devices end with ERR_NVGPUCTRPERM"
_PARAMS = "/proc/driver/nvidia/params"
_STATUS = "/proc/self/status"
_SYS_ADMIN = 1 << 21  # capability.h
_FIX = (
    "run as root (in a container: --cap-add SYS_ADMIN), or write options nvidia "
    "NVreg_RestrictProfilingToAdminUsers=0 to /etc/modprobe.d/nvidia-profiling.conf and reboot: "
    "https://developer.nvidia.com/ERR_NVGPUCTRPERM"
)


def counter_checks(place: Surroundings) -> tuple[Check, ...]:
    """Check ncu and the permission that it needs."""
    return (find_tool(place, NCU).check, may_read_counters(place))


def may_read_counters(place: Surroundings) -> Check:
    """Say whether this process may read performance counters, by the driver's own setting."""
    try:
        params = below(place, _PARAMS).read_text()
    except OSError as error:
        return Check(_NAME, "missing", f"no NVIDIA driver to ask: {why(error)}", _LOST, "see NVML")
    found = re.search(r"^(RmProfilingAdminOnly): (\d)$", params, re.MULTILINE)
    if found is None:
        reason = f"{_PARAMS} does not say RmProfilingAdminOnly"
        return Check(_NAME, "unknown", reason, _LOST, _FIX)
    setting = f"{found[1]} is {found[2]}"
    if found[2] == "0":
        return Check(_NAME, "ok", f"{setting}: any user may read them")
    return _for_admins(place, setting)


def _for_admins(place: Surroundings, setting: str) -> Check:
    try:
        status = below(place, _STATUS).read_text()
    except OSError as error:
        return Check(_NAME, "unknown", f"{setting}, but {why(error)}", _LOST, _FIX)
    found = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.MULTILINE)
    if found is not None and int(found[1], 16) & _SYS_ADMIN:
        return Check(_NAME, "ok", f"{setting}, and this process has CAP_SYS_ADMIN")
    reason = f"{setting}: for administrators only, and this process lacks CAP_SYS_ADMIN"
    return Check(_NAME, "limited", reason, _LOST, _FIX)
