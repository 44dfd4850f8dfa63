"""What nvidia-smi's table says of what it could not see: processes, and the driver itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

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


class TableNotes:
    """Follows the lines of tables: where processes were not listed, where the driver was lost."""

    def __init__(self) -> None:
        self._is_open = False  # in a block of processes that has none so far
        self._is_unlisted = False
        self._lost: str | None = None

    def see(self, line: str) -> None:
        """Look at the next line."""
        if _HEAD.match(line):
            self._is_open = True
        elif self._is_open and _END.match(line):  # a block with its end and nothing in it
            self._is_open, self._is_unlisted = False, True
        elif self._is_open and (_NOBODY.match(line) or _PROCESS.match(line)):
            self._is_open = False
        if self._lost is None and (found := _LOST.search(line)):
            self._lost = (found[1] or found[2]).strip()

    def sentences(self) -> Iterator[str]:
        """Say what was seen."""
        if self._is_unlisted:
            yield _UNLISTED
        if self._lost is not None:
            yield (
                f'At some time nvidia-smi could not reach the driver ("{self._lost}"): what it '
                "showed before is the last that is known, and whatever ran on the GPU may run on. "
                "In a container, access is lost when the host's service manager reloads; start the "
                "container anew."
            )
