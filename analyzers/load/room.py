"""An engine's figures against its caps."""

from __future__ import annotations

from dataclasses import dataclass

AT_CAP = 0.95  # a budget counts as used up at this fraction: the rest is too small for a request


@dataclass(frozen=True, slots=True)
class Room:
    """An engine's running requests and KV pool against its caps; None is not known."""

    running: float | None
    cap: int | None
    kv_used: float | None
    kv_total: float | None
    head_need: int | None
    seen: float | None = None  # the most that ever ran here at once
    is_share: bool = False  # KV is told as a share of the pool, and what a head needs is not

    @property
    def kv_is_short(self) -> bool | None:
        """Whether free KV is less than the queue's head needs."""
        if self.kv_used is None or not self.kv_total:
            return None
        if self.head_need is not None:
            return self.kv_total - self.kv_used < self.head_need
        return self.kv_used >= AT_CAP * self.kv_total

    @property
    def is_tight(self) -> bool:
        """Whether what is free is less than a running request holds on average.

        A queue's head whose need is not known is taken to be like those that run.
        """
        if not self.is_share or self.kv_used is None or not self.kv_total or not self.running:
            return False
        return self.kv_total - self.kv_used < self.kv_used / self.running

    @property
    def is_at_cap(self) -> bool | None:
        """Whether as many run as may. No cap is below what ran at another time."""
        if self.running is None:
            return None
        if self.cap is None:
            return False if self.seen is not None and self.running < self.seen else None
        return self.running >= self.cap

    @property
    def is_under_caps(self) -> bool:
        """Whether there is room of both kinds: silence about one is no room."""
        return self.kv_is_short is False and self.is_at_cap is False
