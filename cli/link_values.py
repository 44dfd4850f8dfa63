"""Links that options name: a kind the device has, a PCIe generation, or a rate."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from stallscope.errors import UsageError

if TYPE_CHECKING:
    from stallscope.profiler.spec import DeviceSpec

# Of 16 lanes in one direction, as the datasheets in the device table state them.
PCIE_BYTES_PER_S = {"pcie3": 16e9, "pcie4": 32e9, "pcie5": 64e9}
_RATE = re.compile(r"(\d+(?:\.\d*)?)\s*(([kmgt]i?)?b|([mgt])bit)/s", re.IGNORECASE)
_FACTORS = {"k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_LEAST = 1e6


def linked_devices(
    device: DeviceSpec | None, link: str | None, host_link: str | None
) -> tuple[DeviceSpec, ...]:
    """Return the device with each pair of the links that --link and --host-link name.

    Without either option it is the device alone, by its own links.
    """
    if link is None and host_link is None:
        return () if device is None else (device,)
    if device is None:
        option = "--link" if link is not None else "--host-link"
        raise UsageError(f"{option} is of a device; name it with --gpu")
    between = [named_link(one, device, "--link") for one in _listed(link)]
    to_host = [named_link(one, device, "--host-link") for one in _listed(host_link)]
    return tuple(_with(device, one, host) for one, host in product(between, to_host))


def check_links(link: str | None, host_link: str | None, *, gpus: int, offload: str | None) -> None:
    """Refuse links over which nothing would go."""
    if link is not None and gpus == 1:
        raise UsageError("--link joins devices: add --gpus N, how many share the model")
    if host_link is not None and offload is None:
        raise UsageError("--host-link carries nothing without --cpu-offload: say how many bytes")


def named_link(text: str | None, device: DeviceSpec, option: str) -> tuple[str, float] | None:
    """Return a link's name and bytes per second, one direction; None for the device's own."""
    if text is None:
        return None
    name = text.strip().lower()
    if name in PCIE_BYTES_PER_S:
        return name, PCIE_BYTES_PER_S[name]
    rate = _rate(name)
    if rate is not None:
        if rate < _LEAST:
            raise UsageError(f"{option}: {text!r} is less than any link has")
        return text.strip(), rate
    own = _own(name, device, option)
    if own is not None:
        return own
    kinds = [k for k in ("nvlink", "ethernet", "pcie") if _own(k, device, option)]
    known = ", ".join((*kinds, *PCIE_BYTES_PER_S))
    raise UsageError(
        f"{option}: {text!r} is no link of {device.name}; write {known}, or a rate in one "
        "direction: 50GB/s, 400Gbit/s"
    )


def _listed(text: str | None) -> Sequence[str | None]:
    return (None,) if text is None else tuple(dict.fromkeys(text.split(",")))


def _rate(text: str) -> float | None:
    match = _RATE.fullmatch(text)
    if match is None:
        return None
    if match[4]:
        return float(match[1]) * _FACTORS[match[4].lower()] / 8
    prefix = (match[3] or "").lower()
    if prefix.endswith("i"):
        return float(match[1]) * 1024.0 ** (1 + "kmgt".index(prefix[0]))
    return float(match[1]) * (_FACTORS[prefix] if prefix else 1.0)


def _own(name: str, device: DeviceSpec, option: str) -> tuple[str, float] | None:
    """Return a link that the device has, by its kind: PCIe joins devices also by the host."""
    if name == "pcie" and device.to_host_bytes_per_s is not None:
        return name, device.to_host_bytes_per_s
    is_between = option == "--link" and name in ("nvlink", "ethernet")
    if is_between and (device.link or "").startswith(name) and device.link_bytes_per_s:
        return name, device.link_bytes_per_s
    return None


def _with(
    device: DeviceSpec, link: tuple[str, float] | None, host: tuple[str, float] | None
) -> DeviceSpec:
    to_host = device.to_host_bytes_per_s if host is None else host[1]
    if link is None:
        return replace(device, host_link_bytes_per_s=to_host)
    # A device on PCIe reaches its host by that; this link is between devices only.
    name = link[0] if to_host is not None else f"between devices: {link[0]}"
    return replace(device, link=name, link_bytes_per_s=link[1], host_link_bytes_per_s=to_host)
