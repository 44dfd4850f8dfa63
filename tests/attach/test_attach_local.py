"""Whether a server is on this machine, tried with real sockets and a stand-in for ssh."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import psutil

from stallscope.profiler.attach.local import is_local

# Listens as `ssh -L` does: it is told by its program's name.
FORWARD = """
import socket, sys, time
listening = socket.create_server(("127.0.0.1", 0))
print(listening.getsockname()[1], flush=True)
time.sleep(60)
"""


def test_addresses_of_this_machine_and_of_others() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        assert is_local("127.0.0.1", port)
        assert is_local("localhost", port)
        own = [
            row.address
            for rows in psutil.net_if_addrs().values()
            for row in rows
            if row.family == socket.AF_INET
        ]
        assert all(is_local(address, port) for address in own)
    assert not is_local("192.0.2.1", 8000)  # of the block kept for documents (RFC 5737)
    assert not is_local("nobody.invalid", 8000)


def test_a_tunnel_ends_elsewhere(tmp_path: Path) -> None:
    tunnel = tmp_path / "ssh"
    tunnel.symlink_to(Path(sys.executable).resolve())
    with subprocess.Popen([tunnel, "-c", FORWARD], stdout=subprocess.PIPE, text=True) as forwarding:
        assert forwarding.stdout is not None
        port = int(forwarding.stdout.readline())
        assert not is_local("127.0.0.1", port)
        forwarding.kill()
