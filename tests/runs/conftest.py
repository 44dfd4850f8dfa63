"""Real runs of the command, each in its own process as a user would start it."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from real_run import Ran

from stallscope.profiler.capture_file import read_capture

TRIES = 5
DISTURBED = ("Unstable machine", "Other processes")  # how a run's notes say so


def _run(arguments: list[str], capture: Path) -> Ran:
    command = [sys.executable, "-m", "stallscope", "run", *arguments]
    command += ["--capture", str(capture), "--force", "--format", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return Ran(json.loads(done.stdout), read_capture(capture))


@pytest.fixture(scope="session")
def run_command(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Ran]:
    """Run `stallscope run` and return what it left; try again what the machine spoilt.

    Shared machines slow down by half for seconds, between a probe and the run it is for as well.
    So a run is repeated when it says itself that something disturbed it, or when its figures do not
    stand as `until` says: a fault of ours fails every try, a neighbour only some. The last one
    stands whatever it says.
    """

    def run(*arguments: str, until: Callable[[Ran], bool] = lambda ran: True) -> Ran:
        folder = tmp_path_factory.mktemp("run")
        for attempt in range(TRIES):
            ran = _run(list(arguments), folder / f"{attempt}.sqlite")
            is_disturbed = any(note.startswith(DISTURBED) for note in ran.report["notes"])
            if not is_disturbed and until(ran):
                break
        return ran

    return run
