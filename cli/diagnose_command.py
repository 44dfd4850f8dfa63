"""`stallscope diagnose`: judge a run that was recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from stallscope.described_device import described_device
from stallscope.errors import CaptureError, InputError, UsageError
from stallscope.garbage import collected_seldom
from stallscope.judge import judge_capture, of_itself
from stallscope.named_specs import model_or_why, noting
from stallscope.offsets import offsets_of
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
    KvDtypeOption,
    ModelOption,
    OutputOption,
    ThresholdsOption,
    UncalibratedOption,
)
from stallscope.output import check_output, deliver
from stallscope.same_files import check_not_read
from stallscope.thresholds_file import read_thresholds

if TYPE_CHECKING:
    from stallscope.profiler.capture import Capture

FILES_HELP = (
    "A capture, an nsys or PyTorch trace, nsys stats, what ncu, nvidia-smi or DCGM prints, a "
    "benchmark's result, or a server's log or metrics; several traces: one for each rank; several "
    "others: joined; - reads stdin."
)


def diagnose(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help=FILES_HELP)],
    model: ModelOption = None,
    gpu: GpuOption = None,
    gpu_file: GpuFileOption = None,
    gpus: GpusOption = None,
    link: Annotated[
        Literal["nvlink", "pcie", "ethernet"] | None,
        typer.Option(help="What joins the devices."),
    ] = None,
    dtype: DtypeOption = None,
    kv_dtype: KvDtypeOption = None,
    max_num_seqs: CapOption = None,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, max=MOST, metavar="N", help="Clients that offered the load."),
    ] = None,
    offset: Annotated[
        list[str] | None,
        typer.Option(metavar="SOURCE=±s", help="Seconds to add to the clock of one of the files."),
    ] = None,
    uncalibrated: UncalibratedOption = False,
    output: OutputOption = None,
    format: FormatOption = None,
    force: ForceOption = False,
    fail_on: FailOnOption = None,
    thresholds: ThresholdsOption = None,
    goal: GoalOption = None,
    explain: ExplainOption = False,
) -> None:
    """Judge a recorded run. Options state facts that the file lacks."""
    if "-" in files and len(files) > 1:
        raise UsageError("- stands alone; name every file of several")
    offsets = offsets_of(offset or (), files)
    check_not_read({"-o": output}, (*files, model, gpu_file, thresholds))
    destination = check_output(output, format=format, force=force, fail_on=fail_on, explain=explain)
    limits = read_thresholds(thresholds)
    spec, left_out = model_or_why(model)
    facts = {
        "model": spec,
        "device": described_device(gpu, gpu_file, link, uncalibrated=uncalibrated),
        "num_devices": gpus,
        "dtype": dtype,
        "kv_dtype": kv_dtype,
        "max_num_seqs": max_num_seqs,
        "concurrency": concurrency,
    }
    known = {name: value for name, value in facts.items() if value is not None}
    with local(files) as paths, collected_seldom():
        from stallscope.profiler.reading import read_inputs

        read = read_inputs(paths, offsets)
        capture = noting(named(read, paths, files), left_out)
        diagnosis = judge_capture(capture, thresholds=limits, goal=goal, facts=known)
    deliver(diagnosis, destination)


@contextmanager
def local(names: Sequence[str]) -> Iterator[list[Path]]:
    """Give files by name, or stdin as a temporary file."""
    if list(names) != ["-"]:
        yield [Path(name) for name in names]
        return
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="stallscope-") as folder:
        path = Path(folder) / "stdin"
        with path.open("wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        try:
            yield [path]
        except (InputError, CaptureError) as error:
            raise type(error)(str(error).replace(str(path), "stdin")) from error


def named(capture: Capture, paths: Sequence[Path], names: Sequence[str]) -> Capture:
    """Name sources as the user does. A capture that names no source is the source itself."""
    from stallscope.profiler.renamed import renamed

    if not capture.sources:
        return of_itself(capture, names[0])
    return renamed(capture, {str(path): name for path, name in zip(paths, names, strict=True)})
