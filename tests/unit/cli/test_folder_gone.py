"""A report whose folder disappears while its run goes on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.output import plotted


def test_plots_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone/x\.md: cannot write: No such file"):
        plotted(None, tmp_path / "gone" / "x.md", force=False)  # type: ignore[arg-type]


def test_a_reader_that_leaves_is_no_error() -> None:
    script = Path(sys.executable).parent / "stallscope"
    command = f"'{script}' plan --model llama-7b --gpu a10g | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""
