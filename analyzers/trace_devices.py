"""Devices of a run of which a trace holds no kernel: processes that were not followed."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.profiler.capture import Capture

_MOST_SURE = 0.9  # the number of devices may have been stated wrongly
_FOLLOW = (
    "processes that are forked after the tracer began, or killed before it wrote, leave no "
    "kernels: start workers by spawn (VLLM_WORKER_MULTIPROC_METHOD=spawn), trace with "
    "nsys profile --trace-fork-before-exec=true --wait=primary, and let the server end by itself"
)


def missing_devices(capture: Capture) -> Decision | None:
    """Say that a trace of a whole run lacks some of its devices.

    Only of an nsys trace, which follows a program's processes. One that states its rank, or stands
    beside others, is of a part of the run, and lacks nothing.
    """
    trace = capture.meta.get("trace")
    if not isinstance(trace, Mapping) or trace.get("of_one_rank") is not False:
        return None
    if [source.kind for source in capture.sources if source.clock == "trace"] != ["nsys"]:
        return None
    stated, seen = capture.subject.num_devices, len({k.device for k in capture.kernels})
    if not 0 < seen < stated:
        return None
    reason = (
        f"of {stated} devices the trace holds kernels of {seen}, so that nothing tells what the "
        f"other{'s' if stated - seen > 1 else ''} did or waited for; {_FOLLOW}. If they were "
        "traced to files of their own, give all of them"
    )
    quality = QUALITY["measured"]
    return Decision("profiler", 1.0, 0.0, None, 0.0, quality, reason, cap=_MOST_SURE)
