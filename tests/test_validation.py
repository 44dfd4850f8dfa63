"""docs/validation.md: the tests that need a GPU, all of them and no others."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
ROWS = re.findall(
    r"^\| ([^|]+) \| (?:`([^`|]+)`|–) \| ([^|]+) \| (?:`([^`|]+)`|–) \|$",
    (ROOT / "docs/validation.md").read_text(),
    re.MULTILINE,
)
STATE = re.compile(r"not run(: .+)?|run on .+ with .+")


def collected(*options: str) -> set[str]:
    """Return what pytest collects, without parameters."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run([*command, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout
    return {line.split("[")[0] for line in done.stdout.splitlines() if "::" in line}


def test_every_row_is_read() -> None:
    table = (ROOT / "docs/validation.md").read_text().split("|---|---|---|---|\n")[1]
    assert len(ROWS) == len(table.strip().splitlines()) >= 10


@pytest.mark.slow
def test_gpu_tests_and_rows_are_the_same() -> None:
    named = [test for _, test, _, _ in ROWS if test]
    assert sorted(named) == sorted(collected("-m", "gpu"))


@pytest.mark.slow
def test_the_same_runs_without_a_gpu() -> None:
    named = {test for _, _, _, test in ROWS if test}
    files = sorted({test.split("::")[0] for test in named})
    assert named - collected("-m", "not gpu", *files) == set()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_state_says_whether_it_ran(row: tuple[str, str, str, str]) -> None:
    what, test, state, _ = row
    assert STATE.fullmatch(state), what
    # What has no test yet says why; what ran has a test that ran.
    assert test or ": " in state
    assert test or not state.startswith("run on")
