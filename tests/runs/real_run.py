"""What a real run leaves: its report and its capture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from stallscope.profiler.capture import Capture


@dataclass(frozen=True)
class Ran:
    """A finished run: its JSON report and its capture."""

    report: dict[str, Any]
    capture: Capture

    def shares(self, phase: str) -> dict[str, float]:
        """Return each budget part's share of a phase's step time."""
        found = next(p for p in self.report["phases"] if p["phase"] == phase)
        return {part["part"]: part["share"] for part in found["budget"]}

    @property
    def whole(self) -> str:
        """The phase that sums all steps: "all", or the only one there was."""
        return str(self.report["phases"][-1]["phase"])
