"""The steps of `stallscope attach`: watch, beside a command if there is one, and join it all."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from types import FrameType
from typing import TYPE_CHECKING

from stallscope.errors import InputError
from stallscope.kept import Kept
from stallscope.output import note
from stallscope.running_verdict import RunningVerdict

if TYPE_CHECKING:
    from stallscope.analyzers.result import Diagnosis
    from stallscope.profiler.attach.access import Access
    from stallscope.profiler.attach.address import Address
    from stallscope.profiler.attach.fetch import Fetcher
    from stallscope.profiler.attach.gpus import ServerGpus
    from stallscope.profiler.attach.identity import Identity
    from stallscope.profiler.attach.watch import Watch
    from stallscope.profiler.capture import Capture


@dataclass(frozen=True, slots=True)
class WatchPlan:
    """What to watch, and for how long: as long as the command runs where there is one."""

    address: Address
    access: Access
    duration_s: float
    interval_s: float
    timeout_s: float
    nvml: bool | None
    command: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a watch brought; `code` is the command's exit code, 0 without one."""

    plan: WatchPlan
    code: int
    watch: Watch
    gpus: ServerGpus
    identity: Identity

    def capture(self) -> Capture:
        """Return it as a capture. Raises InputError where no scrape had an answer."""
        from stallscope.profiler.attach.failures import FetchFailed
        from stallscope.profiler.attach.identity import with_identity
        from stallscope.profiler.attach.to_capture import watched_capture
        from stallscope.profiler.wrap.ended import with_end

        shown = self.plan.address.shown
        try:
            self.watch.check()
        except FetchFailed as failed:  # one that no other try would have changed
            raise InputError(f"{shown}: {failed}") from failed
        if not self.watch.scrapes:
            raise InputError(f"{shown}: {self.watch.last_reason}; no scrape had an answer")
        told = with_identity(watched_capture(self.watch, self.gpus, shown), self.identity)
        return with_end(told, self.code)

    def engines(self) -> dict[str, Capture]:
        """Return a capture for each engine behind the page."""
        from stallscope.profiler.metrics_page.by_engine import by_engine
        from stallscope.profiler.metrics_page.to_capture import capture_of_scrapes

        shown = self.plan.address.shown
        parts = by_engine(self.watch.scrapes)
        return {name: capture_of_scrapes(own, shown) for name, own in parts.items()}


@dataclass(frozen=True, slots=True)
class Reached:
    """A server that was asked once, and what goes on asking it."""

    plan: WatchPlan
    fetcher: Fetcher
    watch: Watch
    running: RunningVerdict
    identity: Identity
    kept: Kept

    def watch_on(self) -> Seen:
        """Watch to the end of the plan, and say on stderr how it stands meanwhile."""
        gpus = _sampled(self.plan)
        so_far = Seen(self.plan, 0, self.watch, gpus, self.identity)
        self.kept.begin(so_far.capture)
        self.watch.start()
        try:
            code = _lasting(self.plan, self.watch)
        finally:
            self.watch.stop()
            self.running.end()
            self.fetcher.close()
            gpus.stop()
        return replace(so_far, code=code)


def reach_server(plan: WatchPlan, judge: Callable[[Capture], Diagnosis], kept: Kept) -> Reached:
    """Ask a server for its page once, and what it is; nothing is started yet.

    Raises InputError where it cannot be read at all.
    """
    from stallscope.profiler.attach.failures import FetchFailed
    from stallscope.profiler.attach.fetch import Fetcher, Patience
    from stallscope.profiler.attach.identity import Identity, ask_identity
    from stallscope.profiler.attach.scraping import Scraper
    from stallscope.profiler.attach.watch import Watch
    from stallscope.profiler.metrics_page.to_capture import capture_of_scrapes

    shown = plan.address.shown
    fetcher = Fetcher(plan.address, plan.access, Patience(plan.timeout_s))
    running = RunningVerdict(
        judge, lambda scrapes: capture_of_scrapes(scrapes, shown), is_alone=not plan.command
    )

    def seen() -> None:
        running.tell(watch.scrapes)
        kept.tell()

    watch = Watch(Scraper(fetcher).scrape, interval_s=plan.interval_s, seen=seen)
    try:
        watch.try_once()
    except FetchFailed as failed:
        fetcher.close()
        raise InputError(f"{shown}: {failed}") from failed
    identity = ask_identity(fetcher) if watch.scrapes else Identity()
    return Reached(plan, fetcher, watch, running, identity, kept)


def _sampled(plan: WatchPlan) -> ServerGpus:
    """Sample this machine's GPUs if the server is on it, or as asked."""
    from stallscope.profiler.attach.gpus import ServerGpus
    from stallscope.profiler.attach.local import is_local

    why_not = None
    if plan.nvml is False:
        why_not = "--no-nvml was given"
    elif plan.nvml is None and not is_local(plan.address.host, plan.address.port):
        why_not = "the server is on another machine, or behind a tunnel"
    return ServerGpus(time.monotonic_ns, why_not)


def _lasting(plan: WatchPlan, watch: Watch) -> int:
    """Let the time pass, or the command run; return the command's exit code."""
    if plan.command:
        from stallscope.profiler.wrap.follow import follow

        return follow(plan.command, os.environ)
    note(f"watching {plan.address.shown} for {plan.duration_s:g} s; Ctrl-C ends it")
    _wait_or_signal(watch, plan.duration_s)
    return 0


class _Ended(Exception):
    """Somebody wants the watch to end."""


def _wait_or_signal(watch: Watch, seconds: float) -> None:
    """Wait for a time, or until a signal asks for the end; a second one asks for nothing more."""
    is_waiting = True

    def end(number: int, frame: FrameType | None) -> None:
        nonlocal is_waiting
        took_signal()
        if is_waiting:
            is_waiting = False
            raise _Ended

    from stallscope.profiler.wrap.patient import ENDING, took_signal

    heard = [n for n in ENDING if signal.getsignal(n) is not signal.SIG_IGN]  # nohup ignores one
    before = {n: signal.signal(n, end) for n in heard}
    try:
        with suppress(_Ended):
            watch.wait(seconds)
            is_waiting = False
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
