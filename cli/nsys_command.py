"""`stallscope nsys`: run any command under Nsight Systems, then judge what it traced."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from stallscope.ending import deliver_after, end_with
from stallscope.errors import StallscopeError
from stallscope.judge import judge_capture
from stallscope.named_specs import named_device, named_model
from stallscope.options import (
    DtypeOption,
    ExplainOption,
    FailOnOption,
    ForceOption,
    FormatOption,
    GoalOption,
    GpuFileOption,
    GpuOption,
    KeepOption,
    KvDtypeOption,
    ModelOption,
    OutputOption,
    ThresholdsOption,
)
from stallscope.output import check_output, note
from stallscope.same_files import check_not_read
from stallscope.thresholds_file import read_thresholds
from stallscope.traced import (
    can_trace_cuda,
    check_command,
    check_kept,
    dry_line,
    keep_capture,
    read_left,
    trace,
    traced_folder,
    wants_metrics,
)

CONTEXT = {"allow_interspersed_args": False}  # what follows the command's name belongs to it


def nsys(
    command: Annotated[list[str], typer.Argument(metavar="CMD", help="What to run, behind --.")],
    keep: Annotated[
        Path | None, typer.Option(metavar="FILE.nsys-rep", help="Keep nsys' own report here.")
    ] = None,
    capture: KeepOption = None,
    delay: Annotated[
        int | None, typer.Option(min=1, metavar="S", help="Trace only after so many seconds.")
    ] = None,
    duration: Annotated[
        int | None,
        typer.Option(min=1, metavar="S", help="Trace so many seconds; nsys then ends the command."),
    ] = None,
    capture_range: Annotated[
        Literal["cudaProfilerApi"] | None,
        typer.Option(help="Trace from cudaProfilerStart to cudaProfilerStop."),
    ] = None,
    forks: Annotated[
        bool, typer.Option(help="Trace forked children too; nsys warns that some may hang.")
    ] = True,
    gpu_metrics: Annotated[
        bool | None,
        typer.Option(
            help="Sample the GPU's counters: SM, tensor, DRAM.", show_default="where permitted"
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only print the command.")] = False,
    model: ModelOption = None,
    gpu: GpuOption = None,
    gpu_file: GpuFileOption = None,
    dtype: DtypeOption = None,
    kv_dtype: KvDtypeOption = None,
    output: OutputOption = None,
    format: FormatOption = None,
    force: ForceOption = False,
    fail_on: FailOnOption = None,
    thresholds: ThresholdsOption = None,
    goal: GoalOption = None,
    explain: ExplainOption = False,
) -> None:
    """Run any command under Nsight Systems and say what limits it.

    The command's output passes through, and its exit code is this command's.
    """
    written = {"-o": output, "--capture": capture, "--keep": keep}
    check_not_read(written, (model, gpu_file, thresholds))
    destination = check_output(output, format=format, force=force, fail_on=fail_on, explain=explain)
    limits = read_thresholds(thresholds)
    facts = {
        "model": named_model(model),
        "device": named_device(gpu, gpu_file),
        "dtype": dtype,
        "kv_dtype": kv_dtype,
    }
    check_command(command)
    check_kept(keep, capture, destination.path, force=force)
    from stallscope.profiler.doctor.surroundings import Surroundings
    from stallscope.profiler.nsys.installed import find_nsys
    from stallscope.profiler.wrap.command import Recording
    from stallscope.profiler.wrap.ended import with_end
    from stallscope.profiler.wrap.patient import patient

    place = Surroundings()
    tool = find_nsys(place)
    recording = Recording(
        cuda=can_trace_cuda(place),
        forks=forks,
        gpu_metrics=wants_metrics(place, tool, gpu_metrics),
        delay_s=delay,
        duration_s=duration,
        capture_range=capture_range,
    )
    if dry_run:
        print(dry_line(place, tool, recording, keep, command))
        return
    if not recording.cuda:
        note("no CUDA driver is loaded: ranges and system calls are traced, but no kernels")
    with patient(), traced_folder(keep) as folder:
        code = trace(place, tool, recording, folder, command)
        try:
            left = read_left(place, tool, folder, keep)
            traced = with_end(left, code, duration_s=duration)
            known = {name: value for name, value in facts.items() if value is not None}
            diagnosis = judge_capture(traced, thresholds=limits, goal=goal, facts=known)
            deliver_after(
                partial(keep_capture, capture, traced, force=force), diagnosis, destination
            )
        except typer.Exit as verdict:
            raise typer.Exit(code or verdict.exit_code) from None
        except StallscopeError as error:
            raise end_with(code, error) from None
    raise typer.Exit(code)
