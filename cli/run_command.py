"""`stallscope run`: run a model under instrumentation, then say what limits it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stallscope.errors import Interrupted, UsageError
from stallscope.files import check_target
from stallscope.judge import judge
from stallscope.options import (
    MODEL_HELP,
    MOST,
    ExplainOption,
    FailOnOption,
    ForceOption,
    FormatOption,
    GoalOption,
    OutputOption,
    ThresholdsOption,
)
from stallscope.output import changes_only, check_output, deliver, note
from stallscope.run_calibration import fit_run
from stallscope.same_files import check_not_read
from stallscope.sizes import parse_bytes
from stallscope.thresholds_file import read_thresholds

if TYPE_CHECKING:
    from stallscope.runner.options import RunOptions

RunDtype = Literal["fp32", "bf16", "fp16", "int8", "int4"]


def run(
    model: Annotated[str, typer.Option(help=MODEL_HELP)] = "tiny-26m",
    dtype: Annotated[RunDtype, typer.Option(help="Of the weights and of the arithmetic.")] = "fp32",
    kv_dtype: Annotated[
        RunDtype | None, typer.Option(help="Of the KV cache; --dtype if not given.")
    ] = None,
    device: Annotated[Literal["auto", "cpu", "cuda"], typer.Option()] = "auto",
    engine: Annotated[
        Literal["builtin", "transformers"], typer.Option(help="What executes the model.")
    ] = "builtin",
    input_tokens: Annotated[
        str, typer.Option(metavar="N|A:B", help="Prompt length, or a range to draw it from.")
    ] = "128",
    output_tokens: Annotated[
        str, typer.Option(metavar="N|A:B", help="Tokens to generate, or a range.")
    ] = "64",
    requests: Annotated[int, typer.Option(metavar="N", help="How many.")] = 16,
    concurrency: Annotated[
        int | None,
        typer.Option(metavar="N", help="Clients, each sending its next request after the last."),
    ] = None,
    rate: Annotated[
        float | None, typer.Option(metavar="R", help="Requests per second, at Poisson times.")
    ] = None,
    trace: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="JSONL with arrival_s, input_tokens, output_tokens."),
    ] = None,
    max_num_seqs: Annotated[
        int, typer.Option(max=MOST, metavar="N", help="Requests running at a time, at most.")
    ] = 64,
    max_num_batched_tokens: Annotated[
        int, typer.Option(max=MOST, metavar="N", help="Tokens in a step, at most.")
    ] = 2048,
    chunked_prefill: Annotated[
        bool | None,
        typer.Option(
            help="Whether a prompt may be split over steps.", show_default="chunked-prefill"
        ),
    ] = None,
    kv_budget: Annotated[
        str | None,
        typer.Option(metavar="BYTES", help="KV cache, such as 8MiB; the workload's most if unset."),
    ] = None,
    block_size: Annotated[
        int | None, typer.Option(metavar="N", help="Tokens per KV block.", show_default="16")
    ] = None,
    isolate_phases: Annotated[
        bool,
        typer.Option(
            "--isolate-phases",
            help="Prefill and decode apart, for 2 s or more each: for counters by phase.",
        ),
    ] = False,
    eos: Annotated[
        list[int] | None,
        typer.Option(metavar="TOKEN", help="End a request at this token; may be repeated."),
    ] = None,
    temperature: Annotated[float, typer.Option(help="0 picks the likeliest token.")] = 0.0,
    top_k: Annotated[int | None, typer.Option(metavar="K")] = None,
    top_p: Annotated[float | None, typer.Option(metavar="P")] = None,
    seed: Annotated[int, typer.Option(metavar="N", help="Of weights, prompts and arrivals.")] = 0,
    warmup: Annotated[
        int, typer.Option(metavar="N", help="Requests before the measured ones.")
    ] = 2,
    capture: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Record here; stallscope-run-DATE-TIME.sqlite if unset."),
    ] = None,
    save_calibration: Annotated[
        bool,
        typer.Option(
            "--save-calibration",
            help="Keep what the steps teach of this device; may probe it for minutes.",
        ),
    ] = False,
    output: OutputOption = None,
    format: FormatOption = None,
    force: ForceOption = False,
    fail_on: FailOnOption = None,
    thresholds: ThresholdsOption = None,
    goal: GoalOption = None,
    explain: ExplainOption = False,
) -> None:
    """Run a model under instrumentation and say what limits it."""
    check_not_read({"-o": output, "--capture": capture}, (model, trace, thresholds))
    destination = check_output(output, format=format, force=force, fail_on=fail_on, explain=explain)
    limits = read_thresholds(thresholds)
    from stallscope.runner.options import RunOptions

    options = RunOptions(
        model=model,
        capture=capture_path(capture, destination.path, force),
        dtype=dtype,
        kv_dtype=kv_dtype,
        device=device,
        engine=engine,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        requests=requests,
        concurrency=concurrency,
        rate=rate,
        trace=trace,
        max_num_seqs=max_num_seqs,
        max_num_batched_tokens=max_num_batched_tokens,
        chunked_prefill=chunked_prefill,
        block_size=block_size,
        isolate_phases=isolate_phases,
        kv_budget=None if kv_budget is None else parse_bytes(kv_budget, "--kv-budget"),
        seed=seed,
        warmup=warmup,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        eos=tuple(eos or ()),
        force=force,
    )
    path = record(options)
    fit_run(path, save=save_calibration)
    deliver(judge(path, thresholds=limits, goal=goal), destination)


def capture_path(given: Path | None, report: Path | None, force: bool) -> Path:
    """Return where the run is recorded."""
    path = given or Path(time.strftime("stallscope-run-%Y%m%d-%H%M%S.sqlite"))
    if report is not None and path.resolve() == report.resolve():
        raise UsageError(f"-o and --capture are both {path}; give each a file of its own")
    check_target(path, force=force, option="--capture")
    return path


def record(options: RunOptions) -> Path:
    """Run, tell the progress on stderr, return the capture's path."""
    from stallscope.runner.run import run as run_model

    try:
        path = run_model(options, progress=changes_only())
    except KeyboardInterrupt:
        raise Interrupted(what_is_left(options.capture)) from None
    note(f"recorded {path}")
    return path


def what_is_left(capture: Path) -> str:
    """Say after an interrupt how to see what ran."""
    if not capture.exists():
        return "interrupted before anything ran"
    from stallscope.profiler.capture_file import read_capture

    recorded = read_capture(capture)
    if not recorded.requests and all(step.warmup for step in recorded.steps):
        return f"interrupted before the first step; {capture} holds nothing to judge"
    return f"interrupted; see what ran with: stallscope diagnose {capture}"
