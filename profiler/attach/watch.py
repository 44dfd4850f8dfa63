"""Scrape a server again and again for a while, whatever it does meanwhile."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator

from stallscope.profiler.attach.failures import FetchFailed
from stallscope.profiler.attach.gauges import gauges
from stallscope.profiler.capture import Event
from stallscope.profiler.metrics_page.scrape import Scrape
from stallscope.profiler.stop_signal import StopSignal

GONE = 2  # scrapes in a row: a single one may be a hiccup


class Watch:
    """Scrapes at an interval, on a thread of its own between `start` and `stop`.

    A scrape that fails is counted by its reason, and the watch goes on. `seen` is called on that
    thread after every other; what it raises ends the watch and is raised by `check`.
    """

    def __init__(
        self,
        get: Callable[[], Scrape],
        *,
        interval_s: float,
        seen: Callable[[], None],
        clock: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self._get = get
        self._interval_s = interval_s
        self._seen = seen
        self._clock = clock
        self.scrapes: list[Scrape] = []
        self._failed: Counter[str] = Counter()
        self._in_a_row: list[tuple[int, str]] = []  # when and why, since the last that succeeded
        self._failed_at: dict[str, int] = {}
        self._error: BaseException | None = None
        self._stop = StopSignal()
        self._thread = threading.Thread(target=self._run, name="stallscope-watch", daemon=True)

    @property
    def last_reason(self) -> str | None:
        """Return why the newest kind of failure failed."""
        return next(reversed(self._failed), None)

    def try_once(self) -> None:
        """Scrape now. Raises FetchFailed where no other try would do better."""
        try:
            scrape = self._get()
        except FetchFailed as failed:
            if failed.is_final and not self.scrapes:
                raise
            self._failed[str(failed)] += 1
            t_ns = self._clock()
            self._failed_at.setdefault(str(failed), t_ns)
            self._in_a_row.append((t_ns, str(failed)))
            return
        self._in_a_row.clear()
        self.scrapes.append(scrape)
        self._seen()

    def start(self) -> None:
        """Go on at every interval from now on."""
        self._thread.start()

    def stop(self) -> None:
        """End the watch after the scrape that runs."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def check(self) -> None:
        """Raise what broke the watch, if anything did."""
        if self._error is not None:
            raise self._error

    def wait(self, seconds: float) -> None:
        """Sleep for a time, or until the watch has broken."""
        self._thread.join(seconds)

    def gaps(self) -> Iterator[Event]:
        """Yield an event for each reason for which scrapes failed."""
        tried = len(self.scrapes) + self._failed.total()
        for reason, count in self._failed.items():
            what = f"the metrics page ({count} of {tried} scrapes)"
            yield Event(self._failed_at[reason], "gap", None, {"what": what, "reason": reason})

    def ending(self) -> Iterator[Event]:
        """Yield an event where the server no longer answered at the end."""
        if len(self._in_a_row) < GONE or not self.scrapes:
            return
        (t_ns, _), (last_ns, reason) = self._in_a_row[0], self._in_a_row[-1]
        last = self.scrapes[-1]
        silent_s = (last_ns - last.t_ns) * 1e-9
        sentence = (
            f"At the end the server no longer answered: its last answer ({gauges(last)}) came "
            f"{silent_s:.0f} s before, and {len(self._in_a_row)} scrapes since then failed "
            f"({reason})."
        )
        yield Event(t_ns, "check", None, {"sentence": sentence, "ends": True})

    def _run(self) -> None:
        due_s = time.monotonic() + self._interval_s
        try:
            while not self._stop.wait(due_s - time.monotonic()):
                self.try_once()
                due_s = max(due_s + self._interval_s, time.monotonic())
        except BaseException as error:
            self._error = error
