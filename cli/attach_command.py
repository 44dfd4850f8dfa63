"""`stallscope attach`: watch a live server through its metrics, then judge what was seen."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from stallscope.errors import StallscopeError
from stallscope.judge import judge_capture
from stallscope.named_specs import model_or_why, named_device, noting
from stallscope.options import (
    MODEL_HELP,
    Dtype,
    FailOnOption,
    ForceOption,
    FormatOption,
    GoalOption,
    GpuFileOption,
    GpuOption,
    OutputOption,
    ThresholdsOption,
)
from stallscope.output import check_output, deliver, note
from stallscope.thresholds_file import read_thresholds
from stallscope.traced import check_command, check_kept, keep_capture
from stallscope.watched import WatchPlan, watch_server

OUR_STEP_FAILED = 70


def attach(
    url: Annotated[str, typer.Argument(metavar="URL", help="The server, or its metrics page.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="[-- CMD]", help="Watch for as long as this runs."),
    ] = None,
    duration: Annotated[
        float, typer.Option(min=1, metavar="S", help="Watch for so many seconds.")
    ] = 30.0,
    interval: Annotated[
        float, typer.Option(min=0.1, max=60, metavar="S", help="From one scrape to the next.")
    ] = 1.0,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=60, metavar="S", help="What a scrape may take."),
    ] = 5.0,
    bearer_token_file: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Holds the token to show; else STALLSCOPE_BEARER_TOKEN does."
        ),
    ] = None,
    ca: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Believe this authority's certificates.")
    ] = None,
    nvml: Annotated[
        bool | None,
        typer.Option(help="Sample this machine's GPUs.", show_default="where the server is local"),
    ] = None,
    capture: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep what is judged here, to diagnose it.")
    ] = None,
    model: Annotated[str | None, typer.Option(help=MODEL_HELP)] = None,
    gpu: GpuOption = None,
    gpu_file: GpuFileOption = None,
    gpus: Annotated[int | None, typer.Option(min=1, metavar="N", help="How many.")] = None,
    dtype: Annotated[Dtype | None, typer.Option(help="Of the weights.")] = None,
    kv_dtype: Annotated[Dtype | None, typer.Option(help="Of the KV cache.")] = None,
    max_num_seqs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The engine's cap on running requests.")
    ] = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Clients that offer the load.")
    ] = None,
    output: OutputOption = None,
    format: FormatOption = None,
    force: ForceOption = False,
    fail_on: FailOnOption = None,
    thresholds: ThresholdsOption = None,
    goal: GoalOption = None,
) -> None:
    """Watch a live server through its metrics and say what limits it.

    It is asked for its metrics once a second, and for nothing else. Ctrl-C ends the watch; what was
    seen until then is judged. Behind -- stands a command whose output passes through and whose
    exit code is this command's.
    """
    destination = check_output(output, format=format, force=force, fail_on=fail_on)
    limits = read_thresholds(thresholds)
    spec, left_out = model_or_why(model)
    stated = {
        "model": spec,
        "device": named_device(gpu, gpu_file),
        "num_devices": gpus,
        "dtype": dtype,
        "kv_dtype": kv_dtype,
        "max_num_seqs": max_num_seqs,
        "concurrency": concurrency,
    }
    facts = {name: value for name, value in stated.items() if value is not None}
    check_kept(None, capture, destination.path, force=force)
    if command:
        check_command(command)
    from stallscope.profiler.attach.access import read_access
    from stallscope.profiler.attach.address import parse_address

    plan = WatchPlan(
        address=parse_address(url, path="/metrics"),
        access=read_access(bearer_token_file, ca, os.environ),
        duration_s=duration,
        interval_s=interval,
        timeout_s=timeout,
        nvml=nvml,
        command=tuple(command or ()),
    )
    judged = partial(judge_capture, thresholds=limits, goal=goal, facts=facts)
    seen = watch_server(plan, judged)
    try:
        watched = noting(seen.capture(), left_out)
        keep_capture(capture, watched, force=force)
        deliver(judged(watched), destination)
    except typer.Exit as verdict:
        raise typer.Exit(seen.code or verdict.exit_code) from None
    except StallscopeError as error:
        if not command:
            raise
        note(" ".join(str(error).split()))
        raise typer.Exit(seen.code or OUR_STEP_FAILED) from None
    raise typer.Exit(seen.code)
