"""The end of a command that watched something for long: whatever fails, the report is not lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import typer

from stallscope.errors import StallscopeError
from stallscope.output import deliver, note

if TYPE_CHECKING:
    from stallscope.analyzers.result import Diagnosis
    from stallscope.output import Output

OUR_STEP_FAILED = 70


def deliver_after(keep: Callable[[], None], diagnosis: Diagnosis, output: Output) -> None:
    """Keep the capture, then deliver the report; where it cannot be written, stdout has it.

    Raises the first error of these when the rest is done.
    """
    failed: StallscopeError | None = None
    try:
        keep()
    except StallscopeError as error:
        failed = error
    try:
        _deliver(diagnosis, output)
    except typer.Exit:
        if failed is None:
            raise
    except StallscopeError as error:
        if failed is not None:
            note(one_line(failed))
        failed = error
    if failed is not None:
        raise failed


def _deliver(diagnosis: Diagnosis, output: Output) -> None:
    try:
        deliver(diagnosis, output)
    except StallscopeError:
        if output.path is not None:
            note("the report follows on stdout instead")
            deliver(diagnosis, replace(output, path=None, fail_on=frozenset()))
        raise


def end_with(code: int, error: StallscopeError) -> typer.Exit:
    """Tell an error of ours beside a command that ran; return the exit with its code, or 70."""
    note(one_line(error))
    return typer.Exit(code or OUR_STEP_FAILED)


def one_line(error: StallscopeError) -> str:
    """Return what an error says in one line."""
    return " ".join(str(error).split())
