"""From what nsys leaves to the SQLite file that is read: by nsys itself, into a given folder."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from stallscope.errors import CaptureError, InputError, MissingTool
from stallscope.profiler.doctor.ask import Answer, ask
from stallscope.profiler.doctor.surroundings import Surroundings, at_least
from stallscope.profiler.nsys.importer import other_importer, own_importer
from stallscope.profiler.nsys.installed import Nsys, find_nsys
from stallscope.profiler.nsys.report_file import report_version

# Converting takes about as long as the trace did; one that takes longer than this hangs.
EXPORT_LIMIT_S = 3600.0
_NSYS = "https://developer.nvidia.com/nsight-systems"


@contextmanager
def exported(report: Path, place: Surroundings | None = None) -> Iterator[Path]:
    """Give a .nsys-rep as SQLite, through the installed nsys, for as long as the block lasts.

    Raises MissingTool where there is no nsys, InputError where it refuses the file.
    """
    place = place or Surroundings()
    try:
        nsys = find_nsys(place)
    except MissingTool as error:
        version = report_version(report) or "unknown"
        raise MissingTool(
            f"{report}: a report of nsys {version}, which only nsys can open: {error}; or where it "
            f"was recorded: nsys export --type sqlite {report.name}"
        ) from None
    with tempfile.TemporaryDirectory(prefix="stallscope-nsys-") as folder:
        yield export_sqlite(place, nsys, report, Path(folder))


def export_sqlite(place: Surroundings, nsys: Nsys, report: Path, folder: Path) -> Path:
    """Convert a report, .nsys-rep or the older .qdrep, and return the SQLite file in `folder`."""
    target = folder / f"{report.stem}.sqlite"
    arguments = ["export", "--type=sqlite", "--force-overwrite=true", f"--output={target}"]
    answer = ask(_patient(place), [str(nsys.path), *arguments, str(report)])
    if answer.problem is None and target.is_file():
        return target
    raise InputError(_refusal(nsys, report, answer))


def import_stream(place: Surroundings, nsys: Nsys, stream: Path) -> Path:
    """Convert the raw .qdstrm, left where nsys does not find its own importer, to a .nsys-rep."""
    importer = own_importer(nsys.path) or other_importer(place, nsys.path)
    if importer is None:
        raise MissingTool(
            f"nsys {nsys.version} left the raw {stream.name}, and no QdstrmImporter is installed "
            f"to convert it: install the whole of Nsight Systems, {_NSYS}"
        )
    report = stream.with_suffix(".nsys-rep")
    answer = ask(_patient(place), [str(importer), "-i", str(stream), "-o", str(report)])
    if answer.problem is None and report.is_file():
        return report
    raise CaptureError(
        f"{stream.name}: {importer} {answer.problem or 'wrote no report'}; {_gist(answer)}"
    )


def _refusal(nsys: Nsys, report: Path, answer: Answer) -> str:
    written = report_version(report)
    if written is not None and _is_newer(written, nsys.version) and not answer.timed_out:
        return (
            f"{report}: version {written} of nsys wrote it, and the installed {nsys.version} at "
            f"{nsys.path} refuses newer files; install {written} or newer ({_NSYS}), or where it "
            f"was recorded: nsys export --type sqlite {report.name}"
        )
    problem = answer.problem or "wrote no SQLite file"
    return (
        f"{report}: nsys {nsys.version} {problem}; the file may be cut: copy it again, or where it "
        f"was recorded: nsys export --type sqlite {report.name}"
    )


def _is_newer(written: str, installed: str) -> bool:
    return not at_least(installed, *map(int, written.split(".")))


def _patient(place: Surroundings) -> Surroundings:
    return replace(place, limit_s=EXPORT_LIMIT_S)


def _gist(answer: Answer) -> str:
    return " ".join(answer.stdout.split())[-200:]
