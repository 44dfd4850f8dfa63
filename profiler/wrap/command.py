"""The command line that records another command under nsys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

GPU_METRICS = ("--gpu-metrics-devices", "--gpu-metrics-device")  # the new name, the old one


@dataclass(frozen=True, slots=True)
class Recording:
    """What nsys shall trace, and when; None is from the command's start or to its end.

    Times are whole seconds: 2022.4 refuses others. `forks` follows children from their fork on,
    before they start a program of their own.
    """

    cuda: bool = True
    forks: bool = True
    gpu_metrics: bool = False
    delay_s: int | None = None
    duration_s: int | None = None
    capture_range: str | None = None


def profile_command(
    nsys: Path,
    options: frozenset[str],
    recording: Recording,
    *,
    output: Path,
    command: Sequence[str],
) -> tuple[str, ...]:
    """Return the command that runs `command` under nsys and leaves its report at `output`.

    `output` has no suffix; nsys adds its own. Of what is wanted, what is not among `options`
    is left out.
    """
    switches = [f"{name}={value}" for name, value in _wanted(recording) if name in options]
    metrics = [f"{name}=all" for name in GPU_METRICS if name in options][:1]
    return (
        str(nsys),
        "profile",
        *switches,
        *(metrics if recording.gpu_metrics else ()),
        "--force-overwrite=true",
        f"--output={_literal(output)}",
        *command,
    )


def _wanted(recording: Recording) -> tuple[tuple[str, str], ...]:
    window = {"--delay": recording.delay_s, "--duration": recording.duration_s}
    ranged = recording.capture_range
    return (
        ("--trace", "cuda,nvtx,osrt" if recording.cuda else "nvtx,osrt"),
        # Samples of call stacks and context switches make a trace a hundred times as long.
        ("--sample", "none"),
        ("--cpuctxsw", "none"),
        ("--cuda-graph-trace", "node"),  # traced as a whole, a graph hides its kernels
        # Engines start their workers by fork.
        ("--trace-fork-before-exec", "true" if recording.forks else "false"),
        *((name, str(seconds)) for name, seconds in window.items() if seconds is not None),
        *((("--capture-range", ranged), ("--capture-range-end", "stop")) if ranged else ()),
    )


def _literal(path: Path) -> str:
    """Return a path as nsys takes it: it puts values in the place of %p, %h, %q{NAME} and %n."""
    return str(path).replace("%", "%%")
