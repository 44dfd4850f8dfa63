"""What nvidia-smi's table says of what it could not see: processes, and the driver itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# A block of processes is headed so, and ends with a rule; its rows begin with the GPU's number.
_HEAD = re.compile(r"\| Processes: ")
_PROCESS = re.compile(r"\| +\d+ +\S")
_NOBODY = re.compile(r"\|\s+No running processes found")
_END = re.compile(r"\+-{20,}")
_LOST = re.compile(
    r"Failed to initialize NVML: (.{1,60})"
    r"|Unable to determine the device handle .{1,99}?: (.{1,60})"
)
_UNLISTED = (
    "The table of processes is empty, which is not the same as none running: in a container the "
    "driver knows processes by the host's numbers and lists none. Memory in use then has an owner, "
    "and is no leak; nvidia-smi on the host names it."
)


def table_notes(lines: Sequence[str]) -> Iterator[str]:
    """Say where processes were not listed, and where the driver's library was lost meanwhile."""
    if any(_is_empty(lines, place) for place, line in enumerate(lines) if _HEAD.match(line)):
        yield _UNLISTED
    lost = next((found for line in lines if (found := _LOST.search(line))), None)
    if lost is not None:
        said = (lost[1] or lost[2]).strip()
        yield (
            f'At some time nvidia-smi could not reach the driver ("{said}"): what it showed before '
            "is the last that is known, and whatever ran on the GPU may run on. In a container, "
            "access is lost when the host's service manager reloads; start the container anew."
        )


def _is_empty(lines: Sequence[str], head: int) -> bool:
    """Tell whether a block has its end and nothing in it."""
    for line in lines[head + 1 :]:
        if _END.match(line):
            return True
        if _NOBODY.match(line) or _PROCESS.match(line):
            return False
    return False
