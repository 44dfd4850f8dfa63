"""`stallscope attach`: watch a live server through its metrics, then judge what was seen."""

from __future__ import annotations

import os
import re
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from stallscope.asked_prometheus import fleet_plan, read_replicas
from stallscope.ending import deliver_after, end_with
from stallscope.errors import StallscopeError, UsageError
from stallscope.fleet import fleet_diagnosis, with_engines
from stallscope.judge import judge_capture
from stallscope.kept import Kept
from stallscope.named_specs import model_or_why, named_device, noting
from stallscope.options import (
    MOST,
    CapOption,
    DtypeOption,
    ExplainOption,
    FailOnOption,
    ForceOption,
    FormatOption,
    GoalOption,
    GpuFileOption,
    GpuOption,
    GpusOption,
    KeepOption,
    KvDtypeOption,
    ModelOption,
    OutputOption,
    ThresholdsOption,
)
from stallscope.output import check_output, deliver
from stallscope.same_files import check_not_read
from stallscope.thresholds_file import read_thresholds
from stallscope.traced import check_command, check_kept
from stallscope.watched import WatchPlan, reach_server

if TYPE_CHECKING:
    from stallscope.analyzers.result import Diagnosis
    from stallscope.profiler.capture import Capture

YEAR_S = 31_536_000
ADDRESS = re.compile(r"\w+://|(?:[^/@]*@)?[\w.\[\]-]+:\d+(?:/|$)")  # and no program's name


def attach(
    url: Annotated[
        str | None, typer.Argument(metavar="URL", help="The server, or its metrics page.")
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Argument(metavar="-- CMD", help="Watch for as long as this runs."),
    ] = None,
    duration: Annotated[
        float, typer.Option(min=1, max=YEAR_S, metavar="S", help="Watch for so many seconds.")
    ] = 30.0,
    interval: Annotated[
        float, typer.Option(min=0.1, max=60, metavar="S", help="From one scrape to the next.")
    ] = 1.0,
    timeout: Annotated[
        float,
        typer.Option(min=0.1, max=60, metavar="S", help="What a scrape may take."),
    ] = 5.0,
    prometheus: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Judge what this Prometheus has scraped instead."),
    ] = None,
    select: Annotated[
        str, typer.Option(metavar="{…}", help="Label matchers, such as '{job=\"vllm\"}'.")
    ] = "{}",
    since: Annotated[str, typer.Option(metavar="1h", help="How far to look back.")] = "1h",
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
    capture: KeepOption = None,
    model: ModelOption = None,
    gpu: GpuOption = None,
    gpu_file: GpuFileOption = None,
    gpus: GpusOption = None,
    dtype: DtypeOption = None,
    kv_dtype: KvDtypeOption = None,
    max_num_seqs: CapOption = None,
    concurrency: Annotated[
        int | None, typer.Option(min=1, max=MOST, metavar="N", help="Clients that offer the load.")
    ] = None,
    output: OutputOption = None,
    format: FormatOption = None,
    force: ForceOption = False,
    fail_on: FailOnOption = None,
    thresholds: ThresholdsOption = None,
    goal: GoalOption = None,
    explain: ExplainOption = False,
) -> None:
    """Watch a live server through its metrics and say what limits it.

    It is asked for its metrics once a second, and once for its version and model. Ctrl-C ends the
    watch; what was seen until then is judged. A kill (kill -9, out of memory) loses the report, and
    without --capture all that was seen; its FILE is renewed every five seconds at first, in a long
    watch more seldom: of an hour the last two minutes may be lost. Behind -- stands a
    command whose output passes through and whose exit code is this command's. With --prometheus
    nothing is watched: what a Prometheus server has scraped of each replica is judged, and the
    replicas are ranked.
    """
    read = (model, gpu_file, thresholds, bearer_token_file, ca)
    check_not_read({"-o": output, "--capture": capture}, read)
    destination = check_output(output, format=format, force=force, fail_on=fail_on, explain=explain)
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
    from stallscope.profiler.attach.access import read_access
    from stallscope.profiler.attach.address import parse_address

    access = read_access(bearer_token_file, ca, os.environ)

    # Clients offer their load to all engines together.
    of_one = {name: value for name, value in facts.items() if name != "concurrency"}

    def judged(seen: Capture, known: dict[str, Any] = facts) -> Diagnosis:
        return judge_capture(noting(seen, left_out), thresholds=limits, goal=goal, facts=known)

    judged_one = partial(judged, known=of_one)
    if prometheus is not None:
        check_alone(url, capture, concurrency)
        plan = fleet_plan(prometheus, access, select=select, since=since)
        deliver(fleet_diagnosis(*read_replicas(plan), judged_one), destination)
        return
    if url is None:
        raise UsageError("name the server: stallscope attach http://HOST:PORT, or --prometheus URL")
    watch = WatchPlan(
        address=parse_address(url, path="/metrics"),
        access=access,
        duration_s=duration,
        interval_s=interval,
        timeout_s=timeout,
        nvml=nvml,
        command=checked_command(command),
    )
    from stallscope.profiler.wrap.patient import patient

    kept = Kept(capture, force=force)
    server = reach_server(watch, judged, kept)
    with patient():
        seen = server.watch_on()
        try:
            watched = seen.capture()
            diagnosis = with_engines(judged(watched), seen.engines(), judged_one)
            deliver_after(partial(kept.finish, watched), diagnosis, destination)
        except typer.Exit as verdict:
            raise typer.Exit(seen.code or verdict.exit_code) from None
        except StallscopeError as error:
            if not command:
                raise
            raise end_with(seen.code, error) from None
    raise typer.Exit(seen.code)


def checked_command(command: list[str] | None) -> tuple[str, ...]:
    """Return a command that can be started; () for none."""
    if command:
        if ADDRESS.match(command[0]):
            raise UsageError(
                f"{command[0].rpartition('@')[2]}: one URL is watched at a time; put -- before a "
                "command"
            )
        check_command(command)
    return tuple(command or ())


def check_alone(url: str | None, capture: Path | None, concurrency: int | None) -> None:
    """Refuse what has no meaning beside --prometheus."""
    if url is not None:
        raise UsageError(f"--prometheus watches no server: leave out {url.rpartition('@')[2]}")
    if capture is not None:
        raise UsageError("--capture keeps what was watched; with --prometheus that server keeps it")
    if concurrency is not None:
        raise UsageError("--concurrency is of all replicas together: nobody knows each one's share")
