"""The words of a verdict: classes, loads, and the parts of a step."""

from __future__ import annotations

CLASSES = (
    "capacity",
    "bandwidth",
    "scheduling",
    "compute",
    "host",
    "interconnect",
    "client",
    "device",
    "telemetry",
    "profiler",
    "none",
    "undetermined",
)
LOADS = ("idle", "underloaded", "served", "overloaded")
PARTS = ("weights", "kv", "compute", "communication", "transfer", "host", "unexplained")
