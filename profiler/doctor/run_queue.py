"""Whether the kernel tells how long threads wait for a core."""

from __future__ import annotations

import re

from stallscope.profiler.doctor.surroundings import Surroundings, below, why
from stallscope.profiler.evidence import Check

_NAME = "waits for cores (schedstat)"


def run_queue_check(place: Surroundings) -> Check:
    """Check for the run-queue delay of this process's first thread."""
    lost = "what other processes take from a run on the CPU: a neighbour is not named"
    fix = "run on Linux with CONFIG_SCHED_INFO (most distributions' kernels) and /proc mounted"
    file = below(place, "/proc/self/schedstat")
    try:
        text = file.read_text()
    except OSError as error:
        return Check(_NAME, "missing", why(error), lost, fix)
    found = re.fullmatch(r"(\d+) (\d+) (\d+)\s*", text)
    if found is None or found[1] == found[3] == "0":
        return Check(_NAME, "unknown", f"{file} says {text.strip()!r:.60}", lost, fix)
    return Check(_NAME, "ok", "the kernel counts how long each thread was ready and had no core")
