"""From a capture file to a diagnosis, with what the user knows of the subject laid over it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from stallscope import __version__

if TYPE_CHECKING:
    from stallscope.analyzers.result import Diagnosis
    from stallscope.analyzers.thresholds import Thresholds
    from stallscope.profiler.capture import Capture
    from stallscope.profiler.spec import Subject


def judge(
    path: Path,
    *,
    thresholds: Thresholds,
    goal: str | None,
    name: str | None = None,
    facts: dict[str, Any] | None = None,
) -> Diagnosis:
    """Read a capture and diagnose it.

    `facts` are Subject fields that the user states. Where the capture names no source,
    it is the source itself, under `name` if its path means nothing to the user.
    """
    from stallscope.profiler.capture_file import read_capture

    capture = of_itself(read_capture(path), name or str(path))
    return judge_capture(capture, thresholds=thresholds, goal=goal, facts=facts)


def of_itself(capture: Capture, name: str) -> Capture:
    """Make a capture that names no source the source itself, under `name`."""
    from dataclasses import replace

    from stallscope.profiler.capture import Source

    if capture.sources:
        return capture
    return replace(capture, sources=(Source(0, "stallscope", name, "monotonic", 0, 0),))


def judge_capture(
    capture: Capture,
    *,
    thresholds: Thresholds,
    goal: str | None,
    facts: dict[str, Any] | None = None,
) -> Diagnosis:
    """Diagnose a capture. `facts` are Subject fields that the user states; what the capture itself
    shows goes before them."""
    from dataclasses import replace

    from stallscope.analyzers.diagnose import diagnose
    from stallscope.analyzers.stated.settle import settle
    from stallscope.analyzers.stated.weights import with_own_dtype

    settled, warnings = settle(capture, facts or {})
    subject, assumed = with_own_dtype(settled)
    diagnosis = diagnose(
        replace(settled, subject=subject), thresholds=thresholds, goal=goal, version=__version__
    )
    notes = (*replaced(capture.subject, settled.subject), *assumed, *diagnosis.notes)
    return replace(diagnosis, notes=notes, warnings=(*warnings, *diagnosis.warnings))


def replaced(recorded: Subject, settled: Subject) -> tuple[str, ...]:
    """Say where the user's own description of the device stands for the one that was recorded."""
    before, after = recorded.device, settled.device
    if before is None or after is None or before.name == after.name:
        return ()
    return (f"--gpu-file describes {after.name}; the capture recorded {before.name}.",)
