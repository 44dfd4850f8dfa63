"""Where a report goes: settled and checked before any work starts, delivered at the end."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from stallscope.errors import InputError, MissingDependency, UsageError
from stallscope.files import check_target, replace, write_text

if TYPE_CHECKING:
    import tempfile

    from stallscope.analyzers.result import Diagnosis

FAILED_ON = 4
FILE_WIDTH = 100


@dataclass(frozen=True, slots=True)
class Output:
    """A checked destination; without a path the report goes to stdout."""

    path: Path | None
    format: str
    force: bool
    fail_on: frozenset[str]
    explain: bool = False


def check_output(
    path: Path | None,
    *,
    format: str | None,
    force: bool,
    fail_on: str | None = None,
    explain: bool = False,
) -> Output:
    """Refuse what cannot be written later, while refusing is still cheap."""
    from stallscope.reports.formats import format_for

    target = None if path == Path("-") else path
    name = format_for(target, format)
    if target is not None:
        check_target(target, force=force, option="-o")
    return Output(target, name, force, parse_classes(fail_on), explain)


def parse_classes(text: str | None) -> frozenset[str]:
    """Return the verdict classes that --fail-on names."""
    from stallscope.analyzers.classes import CLASSES

    names = frozenset() if text is None else frozenset(part.strip() for part in text.split(","))
    for name in sorted(names - set(CLASSES)):
        raise UsageError(f"--fail-on: unknown class {name!r}; known: {', '.join(CLASSES)}")
    return names


def deliver(diagnosis: Diagnosis, output: Output) -> None:
    """Print or write the report, then exit with 4 if --fail-on asks for it."""
    if not output.explain:
        diagnosis = without_derivation(diagnosis)
    images: dict[str, str] = {}
    check_still_free(output)
    if output.path is not None and output.format == "markdown":
        images = plotted(diagnosis, output.path, force=output.force)
    put(rendered(diagnosis, output, images=images), output, diagnosis.verdict.sentence)
    if diagnosis.verdict.bottleneck in output.fail_on:
        raise typer.Exit(FAILED_ON)


def without_derivation(diagnosis: Diagnosis) -> Diagnosis:
    """Leave out how the verdict was reached: it is long, and only for who asks."""
    from dataclasses import replace as with_fields

    return with_fields(diagnosis, explain=())


def check_still_free(output: Output) -> None:
    """Refuse a file that somebody, a watched command say, has written since it was checked."""
    from stallscope.profiler.regular_file import replaceable

    if output.path is None or output.force:
        return
    if replaceable(output.path, named=f"-o {output.path}").exists():
        raise InputError(
            f"-o {output.path}: was written by something else meanwhile, and is left as it is; "
            "name another file, or add --force"
        )


def put(text: str, output: Output, sentence: str) -> None:
    """Print the text, or write it and tell its gist on stderr."""
    if output.path is None:
        print_report(text)
        return
    write_text(output.path, text)
    note(sentence)
    note(f"wrote {output.path}")


def print_report(text: str) -> None:
    """Print to stdout; a full disk or a device behind it is an error of one line.

    A reader that leaves, `head` say, has what it wanted.
    """
    try:
        print(text.rstrip("\n"), flush=True)
    except OSError as error:
        # What is buffered would be tried again, and fail again, as Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return
        raise InputError(f"stdout: cannot write: {error.strerror or error}") from error


def rendered(diagnosis: Diagnosis, output: Output, *, images: dict[str, str]) -> str:
    """Return the report as text in the wanted form."""
    if output.format == "json":
        from stallscope.reports import json_report

        return json_report.render(diagnosis)
    if output.format == "markdown":
        from stallscope.reports import markdown

        return markdown.render(diagnosis, images)
    from stallscope.reports import terminal

    return terminal.render(diagnosis, width=text_width(output), color=wants_color(output))


def plotted(diagnosis: Diagnosis, path: Path, *, force: bool) -> dict[str, str]:
    """Save the plots beside the report; return title and file name of each."""
    from stallscope.reports import plots

    with _beside(path) as folder:
        try:
            images = plots.save_plots(diagnosis, Path(folder), path.stem)
        except MissingDependency as error:
            note(f"no plots: {error}")
            return {}
        except OSError as error:  # a full disk
            raise InputError(f"{path}: cannot write: {error.strerror or error}") from error
        targets = {
            name: check_target(path.with_name(name), force=force, option="-o: the plot")
            for name in images.values()
        }
        for name, target in targets.items():
            replace(target, (Path(folder) / name).read_bytes())
    return images


def _beside(path: Path) -> tempfile.TemporaryDirectory[str]:
    """Make a folder for plots beside a report; its own folder may have gone meanwhile."""
    import tempfile

    try:
        return tempfile.TemporaryDirectory(prefix=".plots-", dir=path.parent)
    except OSError as error:
        raise InputError(f"{path}: cannot write: {error.strerror or error}") from error


def text_width(output: Output) -> int:
    """Return the columns to fill: a file's 100, or what a terminal has within what reads well."""
    if output.path is not None:
        return FILE_WIDTH
    import shutil

    return min(max(shutil.get_terminal_size((FILE_WIDTH, 24)).columns, 60), 120)


def wants_color(output: Output) -> bool:
    """Say whether the text goes to a terminal that nobody asked to keep plain (no-color.org)."""
    return output.path is None and sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def note(text: str) -> None:
    """Print a line for people on stderr; stdout is the report's.

    A terminal that has gone, or a closed pipe, must not take the report with it.
    """
    with suppress(OSError):
        print(f"stallscope: {text}", file=sys.stderr, flush=True)


def changes_only() -> Callable[[str], None]:
    """Return a `note` that leaves out a line that says the same as the last."""
    last: list[str] = []

    def tell(text: str) -> None:
        if last != [text]:
            last[:] = [text]
            note(text)

    return tell
