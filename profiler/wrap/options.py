"""Which options `nsys profile` takes: it lists them; where it does not, its version tells."""

from __future__ import annotations

import re

from stallscope.profiler.doctor.ask import ask
from stallscope.profiler.doctor.surroundings import Surroundings, at_least
from stallscope.profiler.nsys.installed import Nsys

# docs.nvidia.com/nsight-systems/2021.4/UserGuide, "CLI Profile Command Switch Options".
_FROM_2021_4 = frozenset(
    {
        "--capture-range",
        "--capture-range-end",
        "--cpuctxsw",
        "--delay",
        "--duration",
        "--force-overwrite",
        "--gpu-metrics-device",
        "--output",
        "--sample",
        "--trace",
        "--trace-fork-before-exec",
    }
)
# Each option's first version. The granularity of graphs stands in
# docs.nvidia.com/nsight-systems/2022.1/UserGuide; before it they were always traced by node. The
# plural of the metrics' option came with 2024.5 (users of 2024.2.3 tell that it is refused there).
_SINCE = {"--cuda-graph-trace": (2022, 1), "--gpu-metrics-devices": (2024, 5)}


def options_of(place: Surroundings, nsys: Nsys) -> frozenset[str]:
    """Return the options that this nsys takes."""
    answer = ask(place, [str(nsys.path), "profile", "--help"])
    listed = listed_options(answer.stdout)
    return listed if answer.problem is None and "--trace" in listed else documented(nsys.version)


def listed_options(help_text: str) -> frozenset[str]:
    """Return the long options that a help text describes."""
    return frozenset(re.findall(r"--[a-z][a-z0-9-]*[a-z0-9]", help_text))


def documented(version: str) -> frozenset[str]:
    """Return the options that the user's guide of a version describes, of those used here."""
    return _FROM_2021_4 | {name for name, first in _SINCE.items() if at_least(version, *first)}
