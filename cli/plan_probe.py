"""`plan --probe`: measure this machine, tell what it reaches, and keep that as a device file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

from stallscope import __version__
from stallscope.errors import MissingDependency, UsageError
from stallscope.files import check_target
from stallscope.output import Output, changes_only, note, put, text_width, wants_color

if TYPE_CHECKING:
    from stallscope.profiler.spec import MachineReading

_CPU_DTYPES, _CUDA_DTYPES = ("fp32", "bf16"), ("fp32", "bf16", "fp16")
ProbedDevice = Literal["auto", "cpu", "cuda"]


def check_probing(
    probe: bool,
    *,
    device: ProbedDevice | None,
    write_gpu_file: Path | None,
    names_device: bool,
    calibrates: bool,
    force: bool,
) -> None:
    """Refuse what does not go together, and a file that cannot be written later."""
    if device is not None and not probe:
        raise UsageError("--device is what --probe measures: add --probe")
    if write_gpu_file is not None and not (probe or calibrates):
        raise UsageError("--write-gpu-file keeps what was measured: add --probe or --calibrate")
    if probe and names_device:
        raise UsageError("--probe measures the device at hand: leave --gpu and --gpu-file out")
    if write_gpu_file is not None:
        check_target(write_gpu_file, force=force, option="--write-gpu-file")


def take_reading(asked: ProbedDevice | None, dtypes: tuple[str, ...]) -> MachineReading:
    """Probe the machine."""
    from stallscope.runner.run import prepare_process

    prepare_process()
    try:
        from stallscope.runner.devices import choose_device
        from stallscope.runner.machine_probe import probe_machine

        device = choose_device(asked or "auto")
    except ModuleNotFoundError as error:
        raise MissingDependency(error.name or "torch", extra="runner") from None
    usual = _CPU_DTYPES if device == "cpu" else _CUDA_DTYPES
    wanted = tuple(dtype for dtype in dtypes if dtype in _CUDA_DTYPES) or usual
    return probe_machine(device, wanted, tell=changes_only())


def deliver_reading(reading: MachineReading, output: Output) -> None:
    """Print or write what the machine reaches."""
    from stallscope.reports.probe_report import (
        probe_sentence,
        render_json,
        render_markdown,
        render_terminal,
    )

    if output.format == "json":
        text = render_json(reading, version=__version__)
    elif output.format == "markdown":
        text = render_markdown(reading, version=__version__)
    else:
        text = render_terminal(reading, width=text_width(output), color=wants_color(output))
    put(text, output, probe_sentence(reading))


def note_disturbance(reading: MachineReading) -> None:
    """Say on stderr how quiet the machine was under a plan's probe."""
    from stallscope.reports.probe_report import disturbance

    note(disturbance(reading))
