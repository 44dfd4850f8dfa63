"""`stallscope doctor`: what can be observed here, and how to get the rest."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from stallscope import __version__
from stallscope.errors import UsageError
from stallscope.options import ForceOption, FormatOption, OutputOption
from stallscope.output import check_output, put, text_width, wants_color


def doctor(
    root: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Where /proc, /sys and /opt are: a host's root in a container."
        ),
    ] = Path("/"),
    timeout: Annotated[
        float,
        typer.Option(
            min=0.1, max=600.0, metavar="SECONDS", help="For each program that is asked; ≤ 600."
        ),
    ] = 20.0,
    output: OutputOption = None,
    format: FormatOption = None,
    force: ForceOption = False,
) -> None:
    """Say what can be observed here, and how to get the rest. Changes nothing."""
    if not 0.1 <= timeout <= 600.0:  # nan passes typer's comparison
        raise UsageError(f"--timeout {timeout}: from 0.1 to 600 seconds")
    if not os.path.isdir(root):  # also where it may not be looked at
        raise UsageError(f"--root {root}: is no folder")
    destination = check_output(output, format=format, force=force)
    from stallscope.profiler.doctor.examine import examine
    from stallscope.profiler.doctor.surroundings import Surroundings
    from stallscope.reports import doctor_report

    groups = examine(Surroundings(root, dict(os.environ), timeout))
    if destination.format == "json":
        text = doctor_report.render_json(groups, version=__version__)
    elif destination.format == "markdown":
        text = doctor_report.render_markdown(groups, version=__version__)
    else:
        width, color = text_width(destination), wants_color(destination)
        text = doctor_report.render_terminal(groups, width=width, color=color)
    put(text, destination, doctor_report.doctor_sentence(groups))
