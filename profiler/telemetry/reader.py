"""Read a file of GPU telemetry into a capture."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.telemetry.formats import form_of, read_form
from stallscope.profiler.telemetry.to_capture import capture_of
from stallscope.profiler.text_lines import text_lines


def read_telemetry(path: str | PathLike[str]) -> Capture:
    """Read what nvidia-smi or DCGM printed, in any of `formats`.

    The capture holds samples of each GPU and MIG instance under the names of docs/metrics.md, with
    times from the first sample on; `throttle` events where a GPU slowed itself; what the tool had
    no value for as not observable. Raises InputError for other files, and where nothing is said
    of any GPU.
    """
    path = Path(path)
    lines = text_lines(path)
    form = form_of(lines)
    if form is None:
        raise InputError(f"{path} is nothing that nvidia-smi or DCGM prints")
    try:
        found = read_form(form, lines)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not found.rows:
        raise InputError(
            f"{path} is {form} but has no row: nothing ran, or it broke off; record it again"
        )
    return capture_of(found, str(path))
