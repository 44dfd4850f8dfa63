"""A planted 3 ms per step must show up in host time, and nowhere else."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BLOCK = 25  # steps; blocks with and without the sleep alternate in one process
SCRIPT = f"""
import itertools, json, statistics, sys, time
from pathlib import Path
from stallscope.profiler.capture_file import read_capture
from stallscope.runner.engine import Hooks
from stallscope.runner.run import RunOptions, run

steps = itertools.count()
slept = []

def before_step():
    sleeps = next(steps) // {BLOCK} % 2 == 1
    slept.append(sleeps)
    if sleeps:
        time.sleep(0.003)

options = RunOptions(model="tiny-26m", capture=Path(sys.argv[1]), input_tokens="16",
                     output_tokens="512", requests=1, concurrency=1, warmup=1)
capture = read_capture(run(options, hooks=Hooks(before_step=before_step)))
rows = sorted(capture.steps, key=lambda s: s.id)
assert len(rows) == len(slept), (len(rows), len(slept))
medians = {{}}
for sleeps in (False, True):
    chosen = [s for s, was in zip(rows, slept)
              if was == sleeps and s.phase == "decode" and not s.warmup]
    medians[str(sleeps)] = [statistics.median(s.host_ns for s in chosen) / 1e6,
                            statistics.median(s.device_ns for s in chosen) / 1e6]
print(json.dumps(medians))
"""


def test_three_milliseconds_move_host_and_not_the_forward(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path / "run.sqlite")],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    medians = json.loads(done.stdout)
    host_ms, forward_ms = (medians["True"][i] - medians["False"][i] for i in (0, 1))
    print(f"\n3 ms planted: host {host_ms:+.3f} ms, forward {forward_ms:+.3f} ms")
    assert 2.5 <= host_ms <= 3.5
    assert abs(forward_ms) <= 2.0
