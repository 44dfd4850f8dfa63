"""What a trace says of copies and communication, by way: measures, and the way that prevails."""

from __future__ import annotations

import math
from collections.abc import Mapping

from stallscope.analyzers.trace_figures import figures_by_device
from stallscope.profiler.capture import Capture, KernelSummary
from stallscope.profiler.evidence import Measure

# Names of rows as profiler.trace.kernel_rows gives them → the measure of that way.
_WAYS: Mapping[str, str] = {
    "copy, host to device": "copies_to_device",
    "copy, device to host": "copies_to_host",
    "copy, between devices": "copies_between_devices",
}
COPY_MEASURES: dict[str, tuple[str, str]] = {
    "copies_to_device": ("fraction", "of the traced window, copies from the host to a device"),
    "copies_to_host": ("fraction", "of the traced window, copies from a device to the host"),
    "copies_between_devices": ("fraction", "of the traced window, copies between devices"),
    "communication_exposed": ("fraction", "of the traced window, communication and no kernel"),
    "copies_exposed": ("fraction", "of the traced window, copies over links and no kernel"),
    "host_to_device_rate": ("B/s", "bytes from the host over the traced window, each device"),
}


def copy_measures(capture: Capture) -> tuple[Measure, ...]:
    """Return shares of the traced window, the devices' mean, and the rate from the host.

    None without the length of the window; what no row tells of is left out.
    """
    windows = {d: s for d, s in figures_by_device(capture, "trace_window").items() if s > 0}
    if not windows:
        return ()
    links = [k for k in capture.kernels if k.kernel_class == "copy"]
    found = {
        measure: _busy([k for k in links if k.name == name], windows)
        for name, measure in _WAYS.items()
    }
    found["communication_exposed"] = _exposed(capture, "communication", windows)
    found["copies_exposed"] = _exposed(capture, "copy", windows)
    sizes = figures_by_device(capture, "host_to_device_bytes")
    found["host_to_device_rate"] = {d: sizes[d] / windows[d] for d in sizes if d in windows}
    return tuple(_mean(name, by_device) for name, by_device in found.items() if by_device)


def _busy(rows: list[KernelSummary], windows: Mapping[str, float]) -> dict[str, float]:
    """Return each device's share; 0 for one without such rows, nothing where no device has any."""
    if not any(k.device in windows for k in rows):
        return {}
    return {
        device: math.fsum(k.busy_ns * 1e-9 for k in rows if k.device == device) / window_s
        for device, window_s in windows.items()
    }


def _exposed(capture: Capture, kernel_class: str, windows: Mapping[str, float]) -> dict[str, float]:
    rows = [k for k in capture.kernels if k.kernel_class == kernel_class]
    if any(k.exposed_ns is None for k in rows):
        return {}
    return _busy([k._replace(busy_ns=k.exposed_ns or 0) for k in rows], windows)


def _mean(name: str, by_device: Mapping[str, float]) -> Measure:
    unit = COPY_MEASURES[name][0]
    many = len(by_device) > 1
    spelled = ", ".join(f"{d} {_spell(v, unit)}" for d, v in sorted(by_device.items()))
    source = "copy rows ÷ traced window" if unit == "fraction" else "bytes ÷ traced window"
    if name == "communication_exposed":
        source = "exposed communication ÷ traced window"
    source += f", mean of {spelled}" if many else ""
    value = math.fsum(by_device.values()) / len(by_device)
    return Measure(name, value, unit, "measured", source)


def _spell(value: float, unit: str) -> str:
    return f"{value * 100:.0f} %" if unit == "fraction" else f"{value / 1e9:.1f} GB/s"


def prevailing_way(found: Mapping[str, Measure]) -> str | None:
    """Name the measure of the link that kernels wait for most; None where no trace tells.

    Copies that kernels hide do not count against communication that nothing hides.
    """
    shares = {name: found[name].value for name in COPY_MEASURES if name in found}
    exchanged, copied = shares.get("communication_exposed", 0.0), shares.get("copies_exposed", 0.0)
    ways = {name: shares[name] for name in _WAYS.values() if shares.get(name)}
    if exchanged > copied:
        return "communication_exposed"
    return max(ways, key=lambda name: ways[name]) if ways and copied else None
