"""`stallscope compare`: set runs side by side, and judge them as an experiment on one setting."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stallscope import __version__
from stallscope.errors import InputError, UsageError
from stallscope.garbage import collected_seldom
from stallscope.judge import judge_capture
from stallscope.named_specs import model_or_why, named_device, noting
from stallscope.options import (
    FailOnOption,
    ForceOption,
    FormatOption,
    GpuFileOption,
    GpuOption,
    GpusOption,
    ModelOption,
    OutputOption,
    ThresholdsOption,
)
from stallscope.output import FAILED_ON, Output, check_output, put, text_width, wants_color
from stallscope.same_files import check_distinct, check_not_read
from stallscope.thresholds_file import read_thresholds
from stallscope.varied_values import with_values

if TYPE_CHECKING:
    from stallscope.analyzers.experiment.result import Comparison, Figure, Run
    from stallscope.analyzers.thresholds import Thresholds
    from stallscope.profiler.capture import Capture

_TABLES = (".csv", ".tsv")
FILES_HELP = "What diagnose reads, one run a file; or one table of runs (CSV), one run a line."


def compare(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help=FILES_HELP)],
    vary: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The one setting that was varied: threads, link_gbps."),
    ] = None,
    values: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Its value in each file, where the files do not say."),
    ] = None,
    metric: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="The figure to judge by: tpot_s, output_tokens_per_s."),
    ] = None,
    model: ModelOption = None,
    gpu: GpuOption = None,
    gpu_file: GpuFileOption = None,
    gpus: GpusOption = None,
    output: OutputOption = None,
    format: FormatOption = None,
    force: ForceOption = False,
    fail_on: FailOnOption = None,
    thresholds: ThresholdsOption = None,
) -> None:
    """Compare runs, and judge what one varied setting tells.

    Options state facts that the files lack, the same for all of them.
    """
    check_not_read({"-o": output}, (*files, model, gpu_file, thresholds))
    destination = check_output(output, format=format, force=force, fail_on=fail_on)
    limits = read_thresholds(thresholds)
    if values is not None and vary is None:
        raise UsageError("--values are of one setting: name it with --vary")
    spec, left_out = model_or_why(model)
    facts = {"model": spec, "device": named_device(gpu, gpu_file), "num_devices": gpus}
    known = {name: value for name, value in facts.items() if value is not None}
    vary = None if vary is None else spelled(vary)
    check_distinct(files)
    with collected_seldom():
        read = tuple(_runs(files, limits, known, left_out))
    runs = tuple(run for run, _ in read)
    if values is not None and vary is not None:
        captures = {run.name: capture for run, capture in read if capture is not None}
        runs = with_values(runs, vary, values, captures)
    if len(runs) < 2:
        raise UsageError("compare takes two runs or more; diagnose judges one")
    from stallscope.analyzers.experiment.compare import compare as compare_runs

    _check_metric(runs, metric)
    deliver(compare_runs(runs, vary=vary, metric=metric, version=__version__), destination)


def spelled(setting: str) -> str:
    """Spell a setting as tables of runs do."""
    from stallscope.profiler.run_cells import setting_name

    return setting_name(setting)


def _runs(
    files: Sequence[Path], limits: Thresholds, facts: dict[str, Any], left_out: str | None
) -> Iterator[tuple[Run, Capture | None]]:
    """Yield the runs, each with what was recorded of it; a table records nothing."""
    from stallscope.analyzers.experiment.figures import run_of
    from stallscope.profiler.file_kinds import input_kind
    from stallscope.profiler.reading import read_input

    for path, name in zip(files, short_names(files), strict=True):
        if input_kind(path) is None and (rows := _written_down(path)):
            yield from ((row, None) for row in rows)
            continue
        _check_text(path)
        capture = noting(read_input(path), left_out)
        diagnosis = judge_capture(capture, thresholds=limits, goal=None, facts=facts)
        yield run_of(name, diagnosis), capture


def short_names(files: Sequence[Path]) -> tuple[str, ...]:
    """Name files without the folders that they share; each by its own name where that is enough."""
    names = tuple(path.name for path in files)
    return names if len(set(names)) == len(names) else tuple(map(str, files))


def _check_text(path: Path) -> None:
    """Refuse a text that is neither a recording nor a table of runs; InputError says what is."""
    from stallscope.profiler.file_kinds import input_kind
    from stallscope.profiler.reading import pieces_in
    from stallscope.profiler.run_table import NEEDED

    if path.suffix in _TABLES and (kind := input_kind(path)) is None and not pieces_in(path, kind):
        raise InputError(f"{path}: no table of runs: {NEEDED}")


def _written_down(path: Path) -> list[Run]:
    """Return the runs of a table, none where the file is no table."""
    from stallscope.analyzers.experiment.result import Run
    from stallscope.profiler.run_table import has_run_table, read_run_table
    from stallscope.profiler.text_lines import decoded

    with path.open("rb") as file:
        head = decoded(file.read(1 << 16))
    if not has_run_table(head):
        return []
    return [
        Run(
            row.name,
            row.settings,
            {
                name: _figure(value, "s" if is_time else _unit(name), path, name in row.under)
                for name, (value, is_time) in row.figures.items()
            },
            readings=row.readings,
        )
        for row in read_run_table(path)
    ]


def _figure(value: float, unit: str, path: Path, is_under: bool) -> Figure:
    from stallscope.analyzers.experiment.result import Figure

    if is_under:
        return Figure(value, unit, "bound", f"{path}: it is under this")
    return Figure(value, unit, "measured", str(path))


def _unit(rate: str) -> str:
    what = rate.removesuffix("_per_s").removeprefix("output_").removeprefix("input_")
    return f"{what.replace('_', ' ')}/s"


def _check_metric(runs: Sequence[Run], metric: str | None) -> None:
    if metric is None or any(metric in run.figures for run in runs):
        return
    known = sorted({name for run in runs for name in run.figures})
    if not known:
        raise InputError("none of the runs has a figure that can be compared")
    raise UsageError(f"--metric: no run has {metric}; the runs have {', '.join(known)}")


def deliver(compared: Comparison, output: Output) -> None:
    """Print or write the comparison, then exit with 4 if --fail-on asks for it."""
    from stallscope.reports.comparison_report import render_json, render_markdown, render_terminal

    if output.format == "json":
        text = render_json(compared)
    elif output.format == "markdown":
        text = render_markdown(compared)
    else:
        text = render_terminal(compared, width=text_width(output), color=wants_color(output))
    put(text, output, compared.conclusion.sentence)
    if compared.conclusion.bottleneck in output.fail_on:
        raise typer.Exit(FAILED_ON)
