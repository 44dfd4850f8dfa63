"""Build the replay library, and run programs that find it where they look for NVML."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pynvml  # noqa: TID253 (its source is read; nothing of it is called)

from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture

HERE = Path(__file__).parent
LIBRARY = "libnvidia-ml.so.1"
# What changes nothing, besides all that has Get or Query in its name.
HARMLESS = {
    *("nvmlInitWithFlags", "nvmlShutdown", "nvmlErrorString", "nvmlGpmSampleAlloc"),
    *("nvmlGpmSampleFree", "nvmlDeviceIsMigDeviceHandle", "nvmlDeviceOnSameBoard"),
}

# `start` is the scenario's second 0, on the clock that a Recorder uses by default.
PRELUDE = """
import os, sys, time
import stallscope
start = time.perf_counter_ns()
os.environ["NVML_REPLAY_START_NS"] = str(start)

def wait_until(second):
    time.sleep(max(0.0, (start - time.perf_counter_ns()) / 1e9 + second))
"""
RECORD = """
with stallscope.Recorder(path, device={device!r}, sample_hz={hz}, force=True) as recorder:
    recorder.set_meta("start_ns", start)
    time.sleep(0.3)
{body}
    time.sleep(0.4)
    wait_until({seconds})
"""


def setters() -> list[str]:
    """Return the entry points that the binding knows and that may change something."""
    source = Path(pynvml.__file__).read_text()
    names = set(re.findall(r'_nvmlGetFunctionPointer\("(nvml\w+)"\)', source)) - HARMLESS
    return sorted(name for name in names if not re.search("Get|Query", name))


def build(compiler: str, folder: Path) -> Path:
    """Compile the library into `folder` and return it."""
    guards = folder / "setters.c"
    guards.write_text(
        "#include <stdio.h>\n#include <stdlib.h>\n"
        "static void refuse(const char *name) {"
        ' fprintf(stderr, "nvml replay: %s called\\n", name); abort(); }\n'
        + "".join(f'void {name}(void) {{ refuse("{name}"); }}\n' for name in setters())
    )
    library = folder / LIBRARY
    options = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([compiler, *options, "-o", library, HERE / "replay.c", guards], check=True)
    return library


@dataclass(frozen=True, slots=True)
class Replay:
    """The built library, and a folder for scenarios and captures."""

    library: Path
    folder: Path

    def run(
        self, program: str, scenario: str, *, more: str = "", env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run a program on a scenario with lines added to it, which win over its own."""
        played = self.folder / "scenario.txt"
        played.write_text((HERE / "scenarios" / f"{scenario}.txt").read_text() + more)
        variables = {
            "LD_LIBRARY_PATH": str(self.library.parent),
            "NVML_REPLAY_SCENARIO": str(played),
        }
        return run(PRELUDE + program, {**variables, **(env or {})})

    def record(
        self,
        scenario: str,
        *,
        body: str = "    pass",
        seconds: float = 0.0,
        hz: float = 10,
        device: str = "cuda:0",
        more: str = "",
        env: dict[str, str] | None = None,
    ) -> Capture:
        """Record with a Recorder on a scenario; `body` runs 0.3 s after its start,
        and the recording lasts 0.7 s at least."""
        path = self.folder / "run.sqlite"
        record = RECORD.format(device=device, hz=hz, body=body, seconds=seconds)
        done = self.run(f"path = {str(path)!r}\n{record}", scenario, more=more, env=env)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        return read_capture(path)


def run(program: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a program in a process of its own, CUDA's variables left out unless given."""
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("CUDA_")}
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**inherited, **env},
        capture_output=True,
        text=True,
        timeout=120,
    )


def values(capture: Capture, name: str) -> list[float]:
    """Return one counter's samples in order."""
    return [s.value for s in capture.device_samples if s.name == name]


def missing(capture: Capture) -> dict[str, tuple[str, str]]:
    """Return reason and remedy of every counter said to be not observable."""
    events = (e.data for e in capture.events if e.kind == "not_observable")
    return {data["what"]: (data["reason"], data["how"]) for data in events}
