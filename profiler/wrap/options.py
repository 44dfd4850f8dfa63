"""Which options `nsys profile` takes: it lists them; where it does not, its version tells."""

from __future__ import annotations

import re

from stallscope.profiler.doctor.ask import ask
from stallscope.profiler.doctor.surroundings import Surroundings, at_least
from stallscope.profiler.nsys.installed import Nsys

# A fallback for an nsys that does not list its options: the help of 2022.4.2 has these, and older
# ones are taken to have them too (not checked; docs.nvidia.com/nsight-systems has each version's
# guide).
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
# The first version taken to have an option, where the help of 2022.4.2 alone does not settle it.
# The granularity of graphs is in that help; from when on was not checked. The plural of the
# metrics' option is refused by 2024.2.3 and used with 2025.6.3, by users' accounts; 2024.5 is a
# guess between those.
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
