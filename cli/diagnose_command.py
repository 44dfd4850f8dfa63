"""`stallscope diagnose`: judge a run that was recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from stallscope.errors import InputError, UsageError
from stallscope.judge import judge
from stallscope.named_specs import named_device, named_model
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
from stallscope.output import check_output, deliver
from stallscope.thresholds_file import read_thresholds


def diagnose(
    files: Annotated[
        list[str], typer.Argument(metavar="FILE", help="A capture; - reads it from stdin.")
    ],
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
        int | None, typer.Option(min=1, metavar="N", help="Clients that offered the load.")
    ] = None,
    output: OutputOption = None,
    format: FormatOption = None,
    force: ForceOption = False,
    fail_on: FailOnOption = None,
    thresholds: ThresholdsOption = None,
    goal: GoalOption = None,
) -> None:
    """Judge a recorded run. Options state facts that the file lacks, or replace what it says."""
    if len(files) > 1:
        raise UsageError("diagnose takes one FILE so far; run it once for each")
    destination = check_output(output, format=format, force=force, fail_on=fail_on)
    limits = read_thresholds(thresholds)
    facts = {
        "model": named_model(model),
        "device": named_device(gpu, gpu_file),
        "num_devices": gpus,
        "dtype": dtype,
        "kv_dtype": kv_dtype,
        "max_num_seqs": max_num_seqs,
        "concurrency": concurrency,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    with local(files[0]) as path:
        diagnosis = judge(path, thresholds=limits, goal=goal, name=files[0], facts=known)
    deliver(diagnosis, destination)


@contextmanager
def local(name: str) -> Iterator[Path]:
    """Give a file by name, or stdin as a temporary file."""
    if name != "-":
        yield existing(Path(name), name)
        return
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="stallscope-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield existing(path, "stdin")


def existing(path: Path, name: str) -> Path:
    """Return the path of a capture, or say what is there instead."""
    from stallscope.file_kind import kind_of
    from stallscope.profiler.capture_file import is_capture

    kind = kind_of(path)
    if not is_capture(path):
        raise InputError(f"{name}: {kind}; diagnose reads captures that stallscope wrote so far")
    return path
