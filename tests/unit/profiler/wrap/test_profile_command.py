"""The command line for nsys of several versions, word by word."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.profiler.wrap.command import Recording, profile_command
from stallscope.profiler.wrap.options import documented, listed_options

NSYS = Path("/usr/bin/nsys")
BASE = [
    "--trace=cuda,nvtx,osrt",
    "--sample=none",
    "--cpuctxsw=none",
    "--trace-fork-before-exec=true",
]
GRAPHS = "--cuda-graph-trace=node"
END = ["--force-overwrite=true", "--output=/tmp/x/trace", "python", "serve.py", "--port=1"]

# `nsys profile --help` of 2022.4.2, in Debian, has `--cuda-graph-trace` and the singular
# `--gpu-metrics-device`. By users' accounts 2024.2.3 refuses the plural and 2025.6.3 takes it. What
# other versions take is a guess, used only where nsys does not list its options itself.
VERSIONS = {
    "2021.4.1.73": (False, "--gpu-metrics-device=all"),
    "2022.4.2.1": (True, "--gpu-metrics-device=all"),
    "2023.4.4.54": (True, "--gpu-metrics-device=all"),
    "2024.6.2.225": (True, "--gpu-metrics-devices=all"),
    "2025.5.1.121": (True, "--gpu-metrics-devices=all"),
}


def line(version: str, recording: Recording) -> list[str]:
    command = ("python", "serve.py", "--port=1")
    options = documented(version)
    found = profile_command(NSYS, options, recording, output=Path("/tmp/x/trace"), command=command)
    assert found[:2] == ("/usr/bin/nsys", "profile")
    return list(found[2:])


@pytest.mark.parametrize("version", VERSIONS)
def test_whole_run(version: str) -> None:
    has_granularity, metrics = VERSIONS[version]
    switches = [*BASE[:3], *([GRAPHS] if has_granularity else []), BASE[3]]
    assert line(version, Recording()) == [*switches, *END]
    assert line(version, Recording(gpu_metrics=True)) == [*switches, metrics, *END]


def test_without_a_driver_cuda_is_not_traced() -> None:
    assert line("2022.4.2.1", Recording(cuda=False))[0] == "--trace=nvtx,osrt"


def test_forked_children_can_be_left_out() -> None:
    assert line("2022.4.2.1", Recording(forks=False))[4] == "--trace-fork-before-exec=false"


def test_window() -> None:
    recording = Recording(delay_s=2, duration_s=30, capture_range="cudaProfilerApi")
    assert line("2025.5.1.121", recording) == [
        *BASE[:3],
        GRAPHS,
        BASE[3],
        "--delay=2",
        "--duration=30",
        "--capture-range=cudaProfilerApi",
        "--capture-range-end=stop",
        *END,
    ]


def test_percent_signs_of_a_path_are_kept_from_nsys() -> None:
    found = profile_command(
        NSYS, frozenset(), Recording(), output=Path("/tmp/100%p/trace"), command=["true"]
    )
    assert found[2:] == ("--force-overwrite=true", "--output=/tmp/100%%p/trace", "true")


def test_options_are_taken_from_help() -> None:
    # As 2022.4.2 prints them: one behind its letter, one alone, one named in another's text.
    text = (
        "\t-t, --trace=\n\n\t   Possible values are 'cuda', 'nvtx'\n\n"
        "\t--cuda-graph-trace=<granularity>[:<launch origin>]\n"
        "\t   may be used with --trace. Dashes -- and --- are none.\n"
    )
    assert listed_options(text) == {"--trace", "--cuda-graph-trace"}
