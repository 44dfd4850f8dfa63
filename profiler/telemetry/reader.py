"""Read a file of GPU telemetry into a capture."""

from __future__ import annotations

from itertools import chain, islice
from os import PathLike
from pathlib import Path

from stallscope.errors import InputError
from stallscope.profiler.capture import Capture
from stallscope.profiler.line_stream import line_stream
from stallscope.profiler.telemetry.formats import WITHIN, form_of, read_form
from stallscope.profiler.telemetry.to_capture import capture_of


def read_telemetry(path: str | PathLike[str]) -> Capture:
    """Read what nvidia-smi or DCGM printed, in any of `formats`.

    The capture holds samples of each GPU and MIG instance under the names of docs/metrics.md, with
    times from the first sample on; `throttle` events where a GPU slowed itself; what the tool had
    no value for as not observable. Raises InputError for other files, and where nothing is said
    of any GPU.
    """
    path = Path(path)
    lines = line_stream(path)
    head = list(islice(lines, WITHIN))
    form = form_of(head)
    if form is None:
        raise InputError(f"{path} is nothing that nvidia-smi or DCGM prints")
    try:
        found = read_form(form, chain(head, lines))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    if not found.rows:
        raise InputError(
            f"{path} is {form} but has no row: nothing ran, or it broke off; record it again"
        )
    return capture_of(found, str(path))
