"""The verdict so far, in one line on stderr, while a server is watched."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from stallscope.errors import StallscopeError
from stallscope.output import note

if TYPE_CHECKING:
    from stallscope.analyzers.result import Diagnosis
    from stallscope.profiler.capture import Capture
    from stallscope.profiler.metrics_page.scrape import Scrape

EVERY_S = 3.0
WINDOW_NS = 15_000_000_000
LEAST_SCRAPES = 3  # at the turn of requests a single page misleads


class RunningVerdict:
    """Judges the last seconds every few seconds.

    On a terminal one line is kept up to date; elsewhere, and where a command prints too, there is a
    line when the class changes.
    """

    def __init__(
        self,
        judge: Callable[[Capture], Diagnosis],
        capture_of: Callable[[Sequence[Scrape]], Capture],
        *,
        is_alone: bool,
    ) -> None:
        self._judge = judge
        self._capture_of = capture_of
        self._is_live = is_alone and sys.stderr.isatty()
        self._due_s = time.monotonic()
        self._last: str | None = None

    def tell(self, scrapes: Sequence[Scrape]) -> None:
        """Say how things stand, if it is time to."""
        if time.monotonic() < self._due_s or len(scrapes) < LEAST_SCRAPES:
            return
        self._due_s = time.monotonic() + EVERY_S
        latest = scrapes[-1]
        window = [s for s in scrapes[-200:] if latest.t_ns - s.t_ns <= WINDOW_NS]
        from stallscope.profiler.attach.gauges import gauges

        try:
            found = self._judge(self._capture_of(window[:])).verdict.bottleneck
        except StallscopeError:
            return  # the whole is judged in the end, and tells what is wrong with it
        seconds = (latest.t_ns - scrapes[0].t_ns) / 1e9
        line = f"{seconds:.0f} s: {gauges(latest)}: {found}"
        if self._is_live:
            with suppress(OSError):
                print(f"\r\x1b[Kstallscope: {line}", end="", file=sys.stderr, flush=True)
        elif found != self._last:
            note(line)
        self._last = found

    def end(self) -> None:
        """Leave the line that was kept up to date."""
        if self._is_live and self._last is not None:
            with suppress(OSError):
                print(file=sys.stderr, flush=True)
