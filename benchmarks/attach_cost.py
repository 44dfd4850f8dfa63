"""What `attach` at 1 Hz costs the server it watches: tokens per second with and without it.

Run `python benchmarks/attach_cost.py [PAIRS]`. It starts a real vLLM on the CPU (as tests/vllm do,
in the same venv), keeps 16 clients on it, and stops and resumes a watching `attach` between blocks.
Tokens are the server's own counter, read at the edges of every block. CPU time is printed too,
since it tells what a shared machine's noise hides.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests" / "vllm"))

import psutil
from paired import interleave, ratio
from vllm_attach import load_command
from vllm_server import Server, serving
from vllm_venv import build_venv, write_model

PAIRS = 40
BLOCK_S = 2.0  # two scrapes
PAGES = 100
SETTLE_S = 0.2  # behind a signal, before a block begins
# Long answers that do not end together: no prompts shall fall into one block of a pair only.
LOAD = ("--clients", "16", "--output", "2000", "--ramp", "10", "--seconds", "100000")


def generated(server: Server) -> float:
    """Return the tokens that the server counted so far."""
    with urllib.request.urlopen(f"{server.url}/metrics", timeout=30) as answer:
        page = answer.read().decode()
    found = re.search(r"^vllm:generation_tokens_total{.*} (\S+)$", page, re.M)
    if found is None:
        raise SystemExit("the server counts no generated tokens")
    return float(found[1])


def cpu_s(pid: int) -> float:
    """Return the CPU seconds that a process used so far."""
    times = psutil.Process(pid).cpu_times()
    return float(times.user + times.system)


def page_cpu_s(server: Server) -> float:
    """Return the CPU seconds that one page costs the API's process; the engine's is another."""
    before_s = cpu_s(server.pid)
    for _ in range(PAGES):
        generated(server)
    return (cpu_s(server.pid) - before_s) / PAGES


def tokens_per_s(server: Server) -> float:
    """Count over one block."""
    before, start_s = generated(server), time.perf_counter()
    time.sleep(BLOCK_S)
    after, end_s = generated(server), time.perf_counter()
    return (after - before) / (end_s - start_s)


@contextmanager
def running(command: list[str]) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command in the background, and end it."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def compare(server: Server, watcher: subprocess.Popen[bytes], pairs: int) -> None:
    """Print watched / unwatched, and what the watching process used."""

    def watched() -> float:
        watcher.send_signal(signal.SIGCONT)
        time.sleep(SETTLE_S)
        return tokens_per_s(server)

    def unwatched() -> float:
        watcher.send_signal(signal.SIGSTOP)
        time.sleep(SETTLE_S)
        return tokens_per_s(server)

    before_s = cpu_s(watcher.pid)
    found = interleave(watched, unwatched, pairs=pairs)
    used_s = (cpu_s(watcher.pid) - before_s) / (pairs * (BLOCK_S + SETTLE_S))
    middle = sorted(alone for _, alone in found)[len(found) // 2]
    print(f"watched / unwatched: {ratio(found)}; {middle:.0f} tokens/s unwatched")
    print(f"attach uses {1e3 * used_s:.1f} ms of CPU a second while it watches")


def main() -> None:
    """Serve, load, watch."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else PAIRS
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        model, log = write_model(folder / "tiny"), folder / "server.log"
        watch = [sys.executable, "-m", "stallscope", "attach", "--duration", "100000"]
        with serving(build_venv(), model, log) as server:
            print(f"a page costs the server's API {1e3 * page_cpu_s(server):.1f} ms of CPU")
            with (
                running(list(load_command(server, *LOAD))),
                running([*watch, server.url]) as watcher,
            ):
                time.sleep(15)  # start-up, and the first requests
                compare(server, watcher, pairs)
                if watcher.poll() is not None:
                    raise SystemExit("attach ended before its time")


if __name__ == "__main__":
    main()
