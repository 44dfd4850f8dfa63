"""The values of a varied setting that the user states, one for each run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from stallscope.errors import UsageError

if TYPE_CHECKING:
    from stallscope.analyzers.experiment.result import Run
    from stallscope.profiler.capture import Capture


def with_values(
    runs: Sequence[Run], vary: str, text: str, captures: Mapping[str, Capture]
) -> tuple[Run, ...]:
    """Return the runs with their values of a setting; `captures` are theirs by name, if any.

    Raises UsageError for too few or too many, and for a value that its run contradicts: what an
    experiment proves is proven by its values.
    """
    values = [part.strip() for part in text.split(",")]
    if len(values) != len(runs) or not all(values):
        raise UsageError(f"--values: {len(values)} of them for {len(runs)} runs; give one for each")
    return tuple(
        _with_value(run, vary, _value(value), captures.get(run.name))
        for run, value in zip(runs, values, strict=True)
    )


def _with_value(run: Run, vary: str, value: float | str, capture: Capture | None) -> Run:
    from stallscope.analyzers.experiment.groups import spelled
    from stallscope.analyzers.stated.settle import contradiction

    if capture is not None:
        why = contradiction(capture, vary, value)
    elif (own := run.settings.get(vary, value)) != value:
        why = f"{spelled(value)} was given, and the table says {spelled(own)}"
    else:
        why = None
    if why is not None:
        raise UsageError(f"--values: {run.name}: {why}")
    return replace(run, settings={**run.settings, vary: value})


def _value(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text
