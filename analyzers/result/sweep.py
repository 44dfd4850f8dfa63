"""Trials of a benchmark at several loads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SweepRow:
    """One load of a sweep, by the client; `load` counts what the sweep's axis names.

    `marginal` is what the added load bought in output tokens per second, as a share of its own
    proportion: 1 is linear, 0 nothing. Rows of one `workload` have the same lengths.
    """

    source: str
    load: float | None
    workload: int
    input_tokens: float | None
    output_tokens: float | None
    in_flight: float | None
    requests_per_s: float | None
    output_tokens_per_s: float | None
    ttft_s: float | None
    tpot_s: float | None
    e2e_s: float | None
    failed: int | None
    bottleneck: str  # JSON "class"
    marginal: float | None


@dataclass(frozen=True, slots=True)
class Sweep:
    """Trials at several loads; `knee` is the last load before more of it stops paying."""

    axis: str | None  # "concurrency" or "requests per second"
    rows: tuple[SweepRow, ...]
    knee: float | None
    sentence: str
    workload: int  # the one that the knee is of
