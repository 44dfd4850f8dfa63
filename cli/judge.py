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

NOT_RECORDED = {"num_devices": 1}  # what a subject says of a fact that nobody stated


def judge(
    path: Path,
    *,
    thresholds: Thresholds,
    goal: str | None,
    name: str | None = None,
    facts: dict[str, Any] | None = None,
) -> Diagnosis:
    """Read a capture and diagnose it.

    `facts` are Subject fields that replace the recorded ones. Where the capture names no source,
    it is the source itself, under `name` if its path means nothing to the user.
    """
    from dataclasses import replace

    from stallscope.profiler.capture import Source
    from stallscope.profiler.capture_file import read_capture

    capture = read_capture(path)
    if not capture.sources:
        itself = Source(0, "stallscope", name or str(path), "monotonic", 0, 0)
        capture = replace(capture, sources=(itself,))
    return judge_capture(capture, thresholds=thresholds, goal=goal, facts=facts)


def judge_capture(
    capture: Capture,
    *,
    thresholds: Thresholds,
    goal: str | None,
    facts: dict[str, Any] | None = None,
) -> Diagnosis:
    """Diagnose a capture. `facts` are Subject fields that replace the recorded ones."""
    from dataclasses import replace

    from stallscope.analyzers.diagnose import diagnose

    recorded = capture.subject
    subject, assumed = with_own_dtype(replace(recorded, **(facts or {})))
    capture = replace(capture, subject=subject)
    diagnosis = diagnose(capture, thresholds=thresholds, goal=goal, version=__version__)
    notes = (*overruled(recorded, facts or {}), *assumed, *diagnosis.notes)
    return replace(diagnosis, notes=notes)


def with_own_dtype(subject: Subject) -> tuple[Subject, tuple[str, ...]]:
    """Take weights to be as the checkpoint has them where nothing tells; return what to say of it.

    Not for fp32: engines convert it, vLLM to fp16 (its --dtype auto).
    """
    from dataclasses import replace

    own = subject.model.dtype if subject.model is not None else None
    if subject.dtype is not None or own in (None, "fp32"):
        return subject, ()
    said = f"The weights are taken to be {own}, as the model's config says; --dtype corrects it."
    return replace(subject, dtype=own), (said,)


def overruled(recorded: Subject, facts: dict[str, Any]) -> tuple[str, ...]:
    """Say which options contradict what the capture itself says."""
    return tuple(
        f"An option replaced the {field.replace('_', ' ')} that the capture recorded: "
        f"{shown(getattr(recorded, field))} became {shown(value)}."
        for field, value in facts.items()
        if getattr(recorded, field) not in (None, value, NOT_RECORDED.get(field))
    )


def shown(value: object) -> str:
    """Return a fact as people know it: models and devices by name."""
    return str(getattr(value, "name", value))
