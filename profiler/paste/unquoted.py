"""A paste without what mail, chat and log collectors put in front of its lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import groupby

from stallscope.profiler.metrics_page.reader import has_page
from stallscope.profiler.telemetry.formats import is_first_line

_QUOTED = re.compile(r"(?:> ?)+(?=[^>])")
# A pod's or a container's name, as "[pod-0] " or "vllm-1  | ": the same on each of its lines.
_NAMED = re.compile(r"\[[^\]\s]{1,80}\](?: |$)|[\w./-]{1,80} *\|(?: |$)")


def unquoted(lines: Sequence[str]) -> list[str]:
    """Return the lines without marks of quotation, and without a name that stands before a table.

    A log that stands alone keeps such a name: its lines are found behind it.
    """
    plain = [_QUOTED.sub("", line, count=1) if line[:1] == ">" else line for line in lines]
    found: list[str] = []
    for name, run in groupby(plain, _name):
        block = list(run)
        rest = [line[len(name) :].lstrip(" ") or "\n" for line in block] if name else block
        found += rest if name and any(map(_begins, rest)) else block
    return found


def _name(line: str) -> str:
    found = _NAMED.match(line) if len(line) < 1000 and line[:1] not in "|+# " else None
    return found.group().rstrip() if found else ""


def _begins(line: str) -> bool:
    return is_first_line(line) or has_page([line])
