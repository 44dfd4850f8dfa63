"""A real vLLM server on this machine's CPU."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

READY_S = 300.0


@dataclass(frozen=True)
class Server:
    """Where it listens, the model it serves (also its name), its log, and its API's process."""

    url: str
    model: Path
    log: Path
    pid: int


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@contextmanager
def serving(python: Path, model: Path, log: Path, *options: str, core: int = 0) -> Iterator[Server]:
    """Start a server with its worker on one core, wait until it answers, and stop it at the end.

    Raises RuntimeError with the end of its log where it does not come up.
    """
    port = free_port()
    command = [str(python), "-m", "vllm.entrypoints.openai.api_server", "--model", str(model)]
    command += ["--load-format", "dummy", "--skip-tokenizer-init", "--enforce-eager"]
    # Left to itself the engine takes bf16, which not every processor multiplies.
    command += ["--dtype", "float32"]
    command += ["--host", "127.0.0.1", "--port", str(port), "--max-model-len", "2048", *options]
    extra = {
        "HF_HUB_OFFLINE": "1",
        "VLLM_NO_USAGE_STATS": "1",
        "VLLM_CPU_KVCACHE_SPACE": "2",
        "VLLM_CPU_OMP_THREADS_BIND": str(core),
    }
    with log.open("wb") as out:
        # A group of its own: the engine's processes must go with it.
        process = subprocess.Popen(
            command,
            env={**os.environ, **extra},
            stdout=out,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            start_new_session=True,
        )
    try:
        url = f"http://127.0.0.1:{port}"
        _wait_until_ready(process, url, log)
        yield Server(url, model, log, process.pid)
    finally:
        _stop(process)


def _wait_until_ready(process: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + READY_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            time.sleep(0.5)
    end = log.read_text("utf-8", "replace")[-2000:]
    raise RuntimeError(f"vLLM did not come up within {READY_S:.0f} s; its log ends:\n{end}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    for sign in (signal.SIGINT, signal.SIGKILL):
        try:
            os.killpg(process.pid, sign)
            process.wait(timeout=20)
        except ProcessLookupError:
            break
        except subprocess.TimeoutExpired:
            continue
    process.wait()
