"""A report whose folder disappears while its run goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.output import plotted
from stallscope.profiler.recorder import Recorder


def test_plots_are_refused_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"gone/x\.md: cannot write: No such file"):
        plotted(None, tmp_path / "gone" / "x.md", force=False)  # type: ignore[arg-type]


def test_a_reader_that_leaves_is_no_error() -> None:
    script = Path(sys.executable).parent / "stallscope"
    command = f"'{script}' plan --model llama-7b --gpu a10g | head -1; echo ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"
    assert done.stderr == ""


def test_a_disk_that_plots_fill_is_told_in_one_line(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = tmp_path_factory.mktemp("cache")  # of fonts, which is cut as well
    file, report = tmp_path / "run.sqlite", tmp_path / "report.md"
    with Recorder(file) as recorder:
        for context in range(1, 40):
            with recorder.decode(1, context_tokens=context):
                pass
    report.write_text("old")
    script = Path(sys.executable).parent / "stallscope"
    command = f"ulimit -f 4; '{script}' diagnose '{file}' -o '{report}' --force"  # blocks of 1 KiB
    done = subprocess.run(
        ["bash", "-c", command],
        env={**os.environ, "MPLCONFIGDIR": str(cache)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == f"stallscope: {report}: cannot write: File too large"
    assert "Traceback" not in done.stderr
    assert report.read_text() == "old"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["report.md", "run.sqlite"]
