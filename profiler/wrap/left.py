"""What is left in the folder of a traced command, read into one capture."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from stallscope.errors import CaptureError, StallscopeError
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.doctor.surroundings import Surroundings
from stallscope.profiler.nsys.export import export_sqlite, import_stream
from stallscope.profiler.nsys.installed import Nsys
from stallscope.profiler.trace.timeline import Trace
from stallscope.profiler.wrap.handshake import Announced, announced

REPORT = "trace"  # the report's name without its suffix


@dataclass(frozen=True, slots=True)
class _Record:
    """A recorder's own capture of the traced command."""

    said: Announced
    capture: Capture


def report_left(place: Surroundings, nsys: Nsys, folder: Path) -> Path:
    """Return the report that nsys left in a folder, made of the raw stream where need be.

    Raises CaptureError where it left nothing.
    """
    for suffix in (".nsys-rep", ".qdrep"):
        report = folder / f"{REPORT}{suffix}"
        if report.is_file():
            return report
    stream = folder / f"{REPORT}.qdstrm"
    if stream.is_file():
        return import_stream(place, nsys, stream)
    raise CaptureError(
        f"nsys {nsys.version} left no report: see what it said above; a command that ends before "
        "the window (--delay, --capture-range) begins leaves none"
    )


def capture_left(
    place: Surroundings, nsys: Nsys, report: Path, folder: Path, *, name: str
) -> Capture:
    """Return the capture of a traced command: nsys' report, and the run's own record if it has one.

    `folder` holds what recorders announced, and takes the exported file; `name` is the report's
    for people. Of several records the one with the most steps is joined.
    """
    trace = replace(read_trace(export_sqlite(place, nsys, report, folder)), path=name)
    records, troubles = _records(folder)
    if not records:
        return _noted(_alone(trace), troubles)
    from stallscope.profiler.wrap.join import join_trace

    first = max(records, key=lambda record: len(record.capture.steps))
    others = [str(r.said.capture) for r in records if r is not first]
    if others:
        troubles.append(
            f"The command kept {len(records)} records; {first.said.capture} is joined here. "
            f"Diagnose the others by themselves: {', '.join(others)}."
        )
    return _noted(join_trace(first.capture, trace, first.said, nsys=nsys.version), troubles)


def read_trace(path: Path) -> Trace:
    """Read an exported SQLite file."""
    from stallscope.profiler.nsys.sqlite_reader import read_nsys_sqlite

    return read_nsys_sqlite(path)


def _alone(trace: Trace) -> Capture:
    from stallscope.profiler.trace.to_capture import capture_of

    return capture_of([trace])


def _records(folder: Path) -> tuple[list[_Record], list[str]]:
    """Read the captures that recorders announced, and say of each that cannot be read why."""
    records: list[_Record] = []
    troubles: list[str] = []
    for said in announced(folder):
        try:
            records.append(_Record(said, read_capture(said.capture)))
        except StallscopeError as error:
            troubles.append(f"The run's own record is not used: {error}.")
    return records, troubles


def _noted(capture: Capture, troubles: list[str]) -> Capture:
    said = [Event(0, "check", None, {"sentence": sentence}) for sentence in troubles]
    return replace(capture, events=(*said, *capture.events)) if said else capture
