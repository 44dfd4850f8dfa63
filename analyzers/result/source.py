"""Where a diagnosis comes from: the capture and its sources."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SourceInfo:
    """Where evidence came from, and of several sources how one's clock was moved onto ours."""

    kind: str
    path: str
    offset_s: float | None = None
    offset_error_s: float | None = None


@dataclass(frozen=True, slots=True)
class CaptureInfo:
    """The capture a diagnosis rests on; `cut_note` says when and how it was cut.

    An `empty` one holds nothing that could be judged.
    """

    sources: tuple[SourceInfo, ...]
    cut: bool
    duration_s: float | None
    cut_note: str | None = None
    empty: bool = False
