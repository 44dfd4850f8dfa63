"""The command that watches a server, called as a user would call it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vllm_page import wait_until
from vllm_server import Server

LOAD = Path(__file__).with_name("vllm_load.py")
Report = dict[str, Any]


def load_command(server: Server, *options: str) -> tuple[str, ...]:
    """Return the command line of a load on a server."""
    return (sys.executable, str(LOAD), server.url, str(server.model), *options)


@contextmanager
def loaded(server: Server, *loads: tuple[str, ...]) -> Iterator[None]:
    """Keep loads on a server until the block ends; leave it with nothing in flight."""
    with ExitStack() as running:
        for load in loads:
            command = load_command(server, *load)
            process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
            running.enter_context(process)
            running.callback(process.kill)
        yield
    wait_until(server.url, lambda page: not page.running and not page.waiting)


def stallscope(report: Path, *arguments: str | Path, behind: tuple[str, ...] = ()) -> Report:
    """Run the command and return its JSON report; what stands behind -- is watched."""
    command = [sys.executable, "-m", "stallscope", *map(str, arguments), "-o", str(report)]
    command += ["--force", *(["--", *behind] if behind else [])]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found: Report = json.loads(report.read_text("utf-8"))
    return found


@dataclass(frozen=True)
class Watch:
    """Calls `attach`, its reports in a folder."""

    folder: Path

    def __call__(
        self, server: Server, *options: str, behind: tuple[str, ...] = (), seconds: float = 30.0
    ) -> Report:
        """Watch for as long as a command runs, else for some seconds."""
        length = () if behind else ("--duration", str(seconds))
        found = stallscope(
            self.folder / "report.json", "attach", server.url, *options, *length, behind=behind
        )
        print(f"\n{found['verdict']['sentence']}")
        return found

    def load(self, server: Server, *options: str, load: tuple[str, ...]) -> Report:
        """Watch for as long as a load runs."""
        return self(server, *options, behind=load_command(server, *load))
