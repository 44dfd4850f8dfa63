"""NVML and GPM: does the driver answer, and for which devices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stallscope.profiler.doctor.ask import Answer, look
from stallscope.profiler.doctor.binding import check_binding
from stallscope.profiler.doctor.surroundings import Surroundings, below
from stallscope.profiler.evidence import Check, CheckStatus

Facts = dict[str, Any]
_LOST = "memory, power, clocks, throttling and utilisation of the GPU"
_GPM_LOST = "DRAM bandwidth, SM and tensor activity while a server runs, without a profiler"
_GPM_FIX = "trace with nsys --gpu-metrics-devices=all, or profile kernels with ncu"
_DRIVER = "install the NVIDIA driver; in a container, start it with --gpus all"
# NVML's error numbers (nvml.h) and what helps; the first match counts.
_FIXES = {
    4: "run as a user who may open /dev/nvidiactl and /dev/nvidia0",
    9: "sudo modprobe nvidia; in a container, start it with --gpus all",
    12: _DRIVER,
    18: "reboot, so that the loaded driver and its libraries are of one version again",
}


def nvml_checks(place: Surroundings) -> tuple[Check, ...]:
    """Check the binding, NVML itself, and GPM."""
    binding = check_binding()
    if binding.status == "missing":
        reason = "not asked: no module pynvml is installed"
        fix = binding.fix
        return (
            binding,
            Check("NVML", "missing", reason, _LOST, fix),
            Check("GPM", "missing", reason, _GPM_LOST, fix),
        )
    found = look(place, "nvml")
    return (binding, _nvml(place, found), _gpm(found))


def driver_version(place: Surroundings) -> str | None:
    """Return what the kernel says of its NVIDIA module, None where none is loaded."""
    try:
        return below(place, "/proc/driver/nvidia/version").read_text().splitlines()[0]
    except (OSError, IndexError):
        return None


def devices(found: Facts | Answer) -> Sequence[Facts]:
    """Return the devices that a look saw."""
    return () if isinstance(found, Answer) else found.get("devices", ())


def _nvml(place: Surroundings, found: Facts | Answer) -> Check:
    if isinstance(found, Answer):
        fix = "try nvidia-smi, and look for NVRM in dmesg"
        return Check("NVML", found.status, f"a process that asks it {found.problem}", _LOST, fix)
    if "error" in found:
        return _refused(place, found)
    seen = devices(found)
    source = f"NVML {found['nvml']} ({found['library'] or 'library'}), driver {found['driver']}"
    lost = [device for device in seen if "error" in device]
    if not seen:
        return Check("NVML", "missing", f"{source}: no device", _LOST, _DRIVER)
    if lost:
        reasons = "; ".join(f"device {device['index']}: {device['error']}" for device in lost)
        fix = "look for NVRM and Xid in dmesg; a lost device needs a reset or a reboot"
        return Check("NVML", "limited", f"{source}: {reasons}", f"{_LOST}, on these", fix)
    return Check("NVML", "ok", f"{source}: {_names(seen)}")


def _refused(place: Surroundings, found: Facts) -> Check:
    said = found["loader"] or found["error"]
    driver = driver_version(place)
    kernel = f"the kernel has {driver}" if driver else "the kernel has no NVIDIA module loaded"
    reason = f"NVML does not start: {said}; {kernel}"
    fix = _FIXES.get(found["code"], "try nvidia-smi, and look for NVRM in dmesg")
    return Check("NVML", "missing", reason, _LOST, fix)


def _gpm(found: Facts | Answer) -> Check:
    seen = devices(found)
    if isinstance(found, Answer):
        return Check("GPM", found.status, "NVML does not answer", _GPM_LOST, "see NVML")
    if not seen:
        return Check("GPM", "missing", "NVML shows no device", _GPM_LOST, "see NVML")
    able = [device for device in seen if device.get("gpm")]
    if len(able) == len(seen):
        return Check("GPM", "ok", f"NVML says that it is supported: {_names(able)}")
    unable = [device for device in seen if not device.get("gpm")]
    errors = sorted({error for d in unable if (error := d.get("gpm_error") or d.get("error"))})
    because = f" ({'; '.join(errors)})" if errors else "; it comes with Hopper"
    reason = f"not supported by {_names(unable)}{because}"
    status: CheckStatus = "limited" if able else "missing"
    return Check("GPM", status, reason, _GPM_LOST, _GPM_FIX)


def _names(seen: Sequence[Facts]) -> str:
    names = [str(device.get("name", f"device {device['index']}")) for device in seen]
    counted = {name: names.count(name) for name in names}
    return ", ".join(name if n == 1 else f"{n} × {name}" for name, n in counted.items())
