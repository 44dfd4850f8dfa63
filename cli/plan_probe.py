"""`plan --probe`: measure this machine, tell what it reaches, and keep that as a device file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from stallscope import __version__
from stallscope.errors import MissingDependency, UsageError
from stallscope.files import check_target, write_text
from stallscope.output import Output, changes_only, note, put, text_width, wants_color

if TYPE_CHECKING:
    from stallscope.profiler.spec import MachineReading

_CPU_DTYPES, _CUDA_DTYPES = ("fp32", "bf16"), ("fp32", "bf16", "fp16")
ProbedDevice = Literal["auto", "cpu", "cuda"]


@dataclass(frozen=True, slots=True)
class Probing:
    """What to probe, and where the device file goes."""

    device: ProbedDevice
    target: Path | None


def check_probing(
    probe: bool,
    *,
    device: ProbedDevice | None,
    write_gpu_file: Path | None,
    names_device: bool,
    force: bool,
) -> Probing | None:
    """Return what --probe asks for, or None without it; refuse what does not go together."""
    if not probe:
        for option, given in (("--write-gpu-file", write_gpu_file), ("--device", device)):
            if given is not None:
                raise UsageError(f"{option} is of what --probe measures: add --probe")
        return None
    if names_device:
        raise UsageError("--probe measures the device at hand: leave --gpu and --gpu-file out")
    if write_gpu_file is not None:
        check_target(write_gpu_file, force=force, option="--write-gpu-file")
    return Probing(device or "auto", write_gpu_file)


def take_reading(probing: Probing, dtypes: tuple[str, ...]) -> MachineReading:
    """Probe the machine, and write its device file if one is wanted."""
    from stallscope.runner.run import prepare_process

    prepare_process()
    try:
        from stallscope.runner.devices import choose_device
        from stallscope.runner.machine_probe import probe_machine

        device = choose_device(probing.device)
    except ModuleNotFoundError as error:
        raise MissingDependency(error.name or "torch", extra="runner") from None
    usual = _CPU_DTYPES if device == "cpu" else _CUDA_DTYPES
    wanted = tuple(dtype for dtype in dtypes if dtype in _CUDA_DTYPES) or usual
    reading = probe_machine(device, wanted, tell=changes_only())
    if probing.target is not None:
        from stallscope.profiler.device_products import device_text

        write_text(probing.target, device_text(reading.device))
        note(f"wrote {probing.target}")
    return reading


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
