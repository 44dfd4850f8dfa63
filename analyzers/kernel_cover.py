"""Whether profiled kernels are enough of a run to speak for it."""

from __future__ import annotations

import dataclasses

from stallscope.analyzers.words import counted, percent
from stallscope.profiler.capture import Capture

# A kernel profiler's counters stand for a phase where they cover this much of its kernel
# time. A profiler's own file does not say what else ran.
LEAST_COVER = 0.5


def why_not_covered(capture: Capture) -> str | None:
    """Say why profiled kernels cannot speak for the run; None where they can, or there are none."""
    profiled = capture.meta.get("ncu")
    if not isinstance(profiled, dict):
        return None
    cover = profiled.get("cover")
    if isinstance(cover, float) and cover >= LEAST_COVER:
        return None
    share = "an unknown share" if not isinstance(cover, float) else percent(cover)
    return (
        f"ncu profiled {_launches(profiled.get('launches'))}, {share} of the kernel time: "
        f"profiles of less than {percent(LEAST_COVER)} do not stand for the run"
    )


def _launches(count: object) -> str:
    """Count launches in words, whatever a capture says of them."""
    if isinstance(count, int) and not isinstance(count, bool):
        return counted(count, "launch")
    return "some launches"


def covered(capture: Capture) -> Capture:
    """Return the capture without counters of kernels that are too few to speak for it."""
    if why_not_covered(capture) is None:
        return capture
    kept = tuple(s for s in capture.device_samples if not s.name.startswith("ncu_"))
    return dataclasses.replace(capture, device_samples=kept)
