"""Causes put into real runs from outside, as the benchmark of that name does, one run each."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "injected_causes.py"


def counts_waits() -> bool:
    file = Path("/proc/self/schedstat")
    return file.exists() and file.read_text().split()[2] != "0"


@pytest.mark.parametrize("cause", ["host", "interconnect", "capacity", "scheduling", "device"])
def test_a_cause_that_was_put_in_is_named(cause: str) -> None:
    """They hold on a busy machine too: caps are counts, the sleep and the copy are 75 % of a step,
    and who else takes the cores beside the neighbours takes them as well."""
    if cause == "device" and not counts_waits():
        pytest.skip("this kernel does not count how long threads wait for a core")
    done = subprocess.run(
        [sys.executable, str(BENCHMARK), cause, "0", "1"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    *table, summary = done.stdout.splitlines()
    print("\n".join(table))
    assert len(table) == 1
    assert json.loads(summary) == {"cause": cause, "runs": 1, "named": 1}
