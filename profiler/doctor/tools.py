"""NVIDIA's command line profilers: where they are, and whether they start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from stallscope.profiler.doctor.ask import ask
from stallscope.profiler.doctor.surroundings import Surroundings, elsewhere, on_path, version_in
from stallscope.profiler.evidence import Check


@dataclass(frozen=True, slots=True)
class Tool:
    """A profiler: its program, where installers leave it, what it gives, where to get it.

    `name` is what it calls itself when asked for its version.
    """

    program: str
    name: str
    folders: tuple[str, ...]
    gives: str
    get: str


@dataclass(frozen=True, slots=True)
class Found:
    """A profiler that started and told its version, or only the check that says why not."""

    check: Check
    path: Path | None = None
    version: str | None = None


NSYS = Tool(
    "nsys",
    "Nsight Systems",
    (
        "/opt/nvidia/nsight-systems*/*/bin",
        "/opt/nvidia/nsight-systems*/*/target-linux-*",
        "/usr/local/cuda*/bin",
        "/usr/lib/nsight-systems/bin",
    ),
    "which kernels run when, gaps between them, and which phase they belong to",
    "install Nsight Systems: https://developer.nvidia.com/nsight-systems "
    "(Debian, Ubuntu: apt-get install nsight-systems)",
)
NCU = Tool(
    "ncu",
    "Nsight Compute",
    ("/opt/nvidia/nsight-compute/*", "/usr/local/cuda*/bin"),
    "SM and DRAM throughput of single kernels, the best evidence for the bandwidth rule",
    "install Nsight Compute: https://developer.nvidia.com/nsight-compute",
)


def find_tool(place: Surroundings, tool: Tool) -> Found:
    """Find a profiler on PATH and ask for its version; one that does not answer is not there."""
    path = on_path(place, tool.program)
    return Found(_not_on_path(place, tool)) if path is None else ask_tool(place, tool, path)


def ask_tool(place: Surroundings, tool: Tool, path: Path) -> Found:
    """Ask a profiler for its version."""
    answer = ask(place, [str(path), "--version"])
    if answer.problem is not None:
        reason = f"{path} {answer.problem}"
        fix = f"see what it lacks: {path} --version; or {tool.get}"
        return Found(Check(tool.program, "unknown", reason, tool.gives, fix))
    if tool.name not in answer.stdout and version_in(answer.stdout) is not None:
        reason = f"{path} is not {tool.name}: it printed {_gist(answer.stdout)}"
        return Found(Check(tool.program, "unknown", reason, tool.gives, tool.get))
    version = version_in(answer.stdout, after="version")
    if version is None:
        reason = f"{path} printed no version: {_gist(answer.stdout)}"
        return Found(Check(tool.program, "unknown", reason, tool.gives, tool.get))
    return Found(Check(tool.program, "ok", f"{version} at {path}"), path, version)


def off_path(place: Surroundings, tool: Tool) -> Path | None:
    """Return the newest profiler of a kind where installers leave it without a word to PATH."""
    patterns = [f"{folder}/{tool.program}" for folder in tool.folders]
    return next((path for path in elsewhere(place, *patterns) if path.is_file()), None)


def _not_on_path(place: Surroundings, tool: Tool) -> Check:
    found = off_path(place, tool)
    if found is None:
        return Check(tool.program, "missing", "not on PATH", tool.gives, tool.get)
    reason = f"not on PATH, but there is {found}"
    fix = f"export PATH={found.parent}:$PATH"
    return Check(tool.program, "missing", reason, tool.gives, fix)


def _gist(text: str) -> str:
    return " ".join(text.split())[:80] or "nothing"
