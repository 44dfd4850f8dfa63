"""What a log says of the system below the engine, and what that leaves unknown."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stallscope.profiler.capture import Event
from stallscope.profiler.server_log.lines import Line

# vLLM's "Using 'pin_memory=False' as WSL is detected.", and names of WSL's own kernels.
MARKS = ("as WSL is detected", "icrosoft-standard", "-Microsoft")
_KERNEL = re.compile(r"(\d{1,2}\.\d{1,3}\.\d{1,4})[\w.]{0,20}-[mM]icrosoft")
_UNPINNED = "pin_memory=False"
# vLLM: a WSL kernel before 4.19.121 cannot pin; since, vLLM does so where it is told to.
_FIRST = (4, 19, 121)
_OPT_IN = "VLLM_WSL2_ENABLE_PIN_MEMORY=1"


def platform_notes(lines: Sequence[Line]) -> Iterator[Event]:
    """Say that the engine ran under WSL, and that what this costs was not measured."""
    seen = [line for line in lines if any(mark in line.text for mark in MARKS)]
    if not seen:
        return
    found = next((m for line in seen if (m := _KERNEL.search(line.text))), None)
    sentence = "The engine ran under WSL"
    if any(_UNPINNED in line.text for line in seen):
        sentence += " without pinned memory: copies from and to the host wait for the host"
    sentence += ". Whether that slows this load, and by how much, cannot be told from a log."
    yield Event(0, "check", None, {"sentence": sentence})
    yield Event(0, "not_observable", None, {
        "what": "what unpinned host memory costs",
        "reason": "the log names the platform, and measures nothing of it",
        "how": f"run the same load with and without: {_gates(found)}",
    })  # fmt: skip


def _gates(found: re.Match[str] | None) -> str:
    opt_in = f"vLLM pins only if {_OPT_IN} is set"
    if found is None:
        return f"a kernel before 4.19.121 refuses (wsl --update); on later ones {opt_in}"
    if tuple(int(part) for part in found.group(1).split(".")) < _FIRST:
        return f"kernel {found.group(1)} refuses to pin (wsl --update); after that {opt_in}"
    return f"kernel {found.group(1)} allows it, and {opt_in}"
