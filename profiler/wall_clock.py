"""Which time on a wall clock a capture's own times stand for, as far as its source told.

A capture says it in `meta["clock"]`: `unix_ns` was shown while its own clock read `t_ns`. Where a
source printed no zone, `"zone": "unknown"` says that `unix_ns` counts on the local clock; where it
printed no year, `"year": "unknown"` that the year is a guess. `error_ns` is how far off it may be.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stallscope.profiler.capture import Capture

_UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class WallClock:
    """The wall's time, in nanoseconds since 1970, at time 0 of a capture."""

    zero_ns: int
    has_zone: bool = True
    has_year: bool = True
    error_ns: int = 0

    def meta(self) -> dict[str, Any]:
        """Return it as `meta["clock"]`."""
        said: dict[str, Any] = {"unix_ns": self.zero_ns, "t_ns": 0}
        if not self.has_zone:
            said["zone"] = _UNKNOWN
        if not self.has_year:
            said["year"] = _UNKNOWN
        return said | ({"error_ns": self.error_ns} if self.error_ns else {})


def wall_clock(capture: Capture) -> WallClock | None:
    """Return what a capture's clock says; None where it says nothing of use."""
    said = capture.meta.get("clock")
    if not isinstance(said, Mapping):
        return None
    unix_ns, t_ns = said.get("unix_ns"), said.get("t_ns", said.get("monotonic_ns"))
    error_ns = said.get("error_ns", 0)
    if not isinstance(unix_ns, int) or not isinstance(t_ns, int):
        return None
    return WallClock(
        unix_ns - t_ns,
        has_zone=said.get("zone") != _UNKNOWN,
        has_year=said.get("year") != _UNKNOWN,
        error_ns=error_ns if isinstance(error_ns, int) and error_ns > 0 else 0,
    )
