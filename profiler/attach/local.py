"""Whether a server runs on this very machine: only then its GPUs are those that NVML lists."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

import psutil  # type: ignore[import-untyped]

# They listen here for a server that is elsewhere.
_FORWARDERS = frozenset({"ssh", "sshd", "kubectl", "socat", "autossh", "cloudflared", "tailscaled"})


def is_local(host: str, port: int) -> bool:
    """Say whether a host's name means this machine, and no known forwarder listens at the port."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError:
        return False
    addresses = {str(where[0]).partition("%")[0] for *_, where in found}
    return bool(addresses) and addresses <= _own(addresses) and not _is_forwarded(port)


def _own(addresses: Iterable[str]) -> set[str]:
    here = {a.address.partition("%")[0] for rows in psutil.net_if_addrs().values() for a in rows}
    return {a for a in addresses if a in here or ipaddress.ip_address(a).is_loopback}


def _is_forwarded(port: int) -> bool:
    """Say whether a forwarder that we may see listens at a port."""
    try:
        listening = [c for c in psutil.net_connections("tcp") if c.status == psutil.CONN_LISTEN]
        names = [psutil.Process(c.pid).name() for c in listening if c.laddr.port == port and c.pid]
    except (psutil.Error, OSError):
        return False
    return any(name in _FORWARDERS for name in names)
