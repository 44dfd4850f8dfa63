"""The run over time."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Window:
    """A stretch of the run with its own load and class.

    `limit` is the admission limit that held its queue, as in Verdict; `put_back` how many running
    requests were preempted in it, by the gauges; None where neither shows.
    """

    from_s: float
    to_s: float
    bottleneck: str  # JSON "class"
    load: str
    limit: str | None = None
    put_back: float | None = None  # JSON "preemptions_inferred"
