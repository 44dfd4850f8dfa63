"""Read an Nsight Compute report through the ncu that is installed."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from dataclasses import replace
from os import PathLike
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.ncu.reader import read_ncu_csv

SIGNATURE = b"NVR\0"
_PAGE = ("--csv", "--page", "details")
_MOST_S = 600  # of large reports ncu prints tens of thousands of rows


def read_ncu_report(path: str | PathLike[str]) -> Capture:
    """Read a .ncu-rep; raise InputError where ncu is missing or refuses the file."""
    path = Path(path)
    ncu = shutil.which("ncu")
    if ncu is None:
        raise InputError(
            f"{path} is a report of Nsight Compute, and ncu, which reads it, is not on PATH; where "
            f"it is, run: ncu --import {path.name} {' '.join(_PAGE)} > kernels.csv, and give that"
        )
    with tempfile.TemporaryDirectory(prefix="stallscope-") as folder:
        page = Path(folder) / "details.csv"
        _print(ncu, path, page)
        try:
            capture = read_ncu_csv(page)
        except InputError as error:
            raise InputError(str(error).replace(str(page), str(path))) from error
    source = capture.sources[0]._replace(path=str(path))
    return replace(capture, sources=(source,))


def _print(ncu: str, path: Path, page: Path) -> None:
    command = [ncu, "--import", str(path), *_PAGE]
    try:
        with page.open("wb") as file:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.PIPE,
                timeout=_MOST_S,
                check=False,
            )
    except subprocess.TimeoutExpired:
        raise InputError(f"{path}: ncu took more than {_MOST_S} s to print it") from None
    except OSError as error:
        raise InputError(f"{path}: {ncu} cannot be started ({error.strerror})") from error
    if done.returncode != 0:
        said = (done.stderr or page.read_bytes()).decode(errors="replace").split("\n")
        last = next((line for line in reversed(said) if line.strip()), "without a word")
        raise InputError(
            f"{path}: ncu at {ncu} refused it ({last.strip().removeprefix('==ERROR== ')}); a "
            "report needs an ncu as new as the one that wrote it"
        )
