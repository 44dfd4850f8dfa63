"""The steps of `stallscope nsys`: what to record, recording it, and reading what was left."""

from __future__ import annotations

import os
import shlex
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from stallscope.errors import InputError, UsageError
from stallscope.files import check_target
from stallscope.output import note

if TYPE_CHECKING:
    from stallscope.profiler.capture import Capture
    from stallscope.profiler.doctor.surroundings import Surroundings
    from stallscope.profiler.nsys.installed import Nsys
    from stallscope.profiler.wrap.command import Recording

REPORT_SUFFIX = ".nsys-rep"


def check_command(command: Sequence[str]) -> None:
    """Refuse a command that cannot be started."""
    program = command[0]
    if program.startswith("-"):
        raise UsageError(f"{program}: no such option; the command to run stands behind --")
    if shutil.which(program) is None:
        where = "no such program" if os.sep in program else "not on PATH"
        raise UsageError(f"{program}: {where}; check the command behind --")


def check_kept(
    keep: Path | None, capture: Path | None, report: Path | None, *, force: bool
) -> None:
    """Refuse files that cannot be written when the command has run."""
    if keep is not None and keep.suffix != REPORT_SUFFIX:
        raise UsageError(f"--keep {keep}: give the report the suffix {REPORT_SUFFIX}")
    for option, path in (("--keep", keep), ("--capture", capture)):
        if path is not None:
            check_target(path, force=force, option=option)
    given = [path.resolve() for path in (keep, capture, report) if path is not None]
    if len(set(given)) < len(given):
        raise UsageError("--keep, --capture and -o name one file; give each a file of its own")


def can_trace_cuda(place: Surroundings) -> bool:
    """Say whether a CUDA driver is here: Linux' own, or that of Windows under it."""
    from stallscope.profiler.doctor.nvml import driver_version
    from stallscope.profiler.doctor.surroundings import below

    return driver_version(place) is not None or below(place, "/dev/dxg").exists()


def wants_metrics(place: Surroundings, nsys: Nsys, asked: bool | None) -> bool:
    """Settle whether the GPU's counters are sampled: as asked, else where nsys offers it."""
    if asked is False or (asked is None and not can_trace_cuda(place)):
        return False
    from stallscope.profiler.doctor.nsys import gpu_metrics_check
    from stallscope.profiler.doctor.tools import NSYS, ask_tool

    check = gpu_metrics_check(place, ask_tool(place, NSYS, nsys.path))
    if asked and check.status != "ok":
        note(f"--gpu-metrics may fail: {check.reason}")
    return bool(asked) or check.status == "ok"


def command_line(
    place: Surroundings, nsys: Nsys, recording: Recording, output: Path, command: Sequence[str]
) -> tuple[str, ...]:
    """Return the command that this nsys is called with; `output` is without its suffix."""
    from stallscope.profiler.wrap.command import profile_command
    from stallscope.profiler.wrap.options import options_of

    options = options_of(place, nsys)
    return profile_command(nsys.path, options, recording, output=output, command=command)


@contextmanager
def traced_folder(keep: Path | None) -> Iterator[Path]:
    """Give a temporary folder: beside the file to keep, as traces are large, else in TMPDIR."""
    beside = Path(os.path.realpath(keep)).parent if keep is not None else None
    with tempfile.TemporaryDirectory(prefix=".stallscope-nsys-", dir=beside) as folder:
        yield Path(folder)


def trace(
    place: Surroundings, nsys: Nsys, recording: Recording, folder: Path, command: Sequence[str]
) -> int:
    """Run the command under nsys to its end and return its exit code.

    nsys leaves its report in the folder, and recorders in the command say there where theirs is.
    """
    from stallscope.profiler.wrap.follow import follow
    from stallscope.profiler.wrap.handshake import FOLDER
    from stallscope.profiler.wrap.left import REPORT

    line = command_line(place, nsys, recording, folder / REPORT, command)
    return follow(line, {**place.environ, FOLDER: str(folder)})


def read_left(place: Surroundings, nsys: Nsys, folder: Path, keep: Path | None) -> Capture:
    """Read what was left in the folder; the report is moved to where it is kept."""
    from stallscope.profiler.wrap.left import capture_left, report_left

    report = report_left(place, nsys, folder)
    if report.with_suffix(".qdstrm").exists():
        note("nsys did not find its importer; the trace was converted all the same")
    if keep is not None:
        from stallscope.profiler.regular_file import replaceable

        target = replaceable(keep, named=f"--keep {keep}")  # it may have changed meanwhile
        try:
            report = report.replace(target)
        except OSError as error:
            raise InputError(f"--keep {keep}: cannot write: {error.strerror or error}") from error
        note(f"kept {keep}")
    return capture_left(place, nsys, report, folder, name=str(keep or "nsys trace"))


def keep_capture(path: Path | None, capture: Capture, *, force: bool) -> None:
    """Write what is judged to a file, if one is wanted."""
    if path is None:
        return
    from stallscope.profiler.capture_writer import write_capture

    write_capture(path, capture, force=force)
    note(f"recorded {path}")


def dry_line(
    place: Surroundings,
    nsys: Nsys,
    recording: Recording,
    keep: Path | None,
    command: Sequence[str],
) -> str:
    """Return what would be run, as a shell takes it."""
    output = keep.with_suffix("") if keep is not None else Path("trace")
    return shlex.join(command_line(place, nsys, recording, output, command))
