"""A watch goes on whatever the server does, and keeps what it saw."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterator, Sequence

import pytest

from stallscope.profiler.attach.failures import FetchFailed
from stallscope.profiler.attach.watch import Watch
from stallscope.profiler.capture import Event
from stallscope.profiler.metrics_page.scrape import Scrape

SCRAPE = Scrape(0, None, {}, {})


def played(answers: Sequence[Scrape | FetchFailed]) -> Callable[[], Scrape]:
    left: Iterator[Scrape | FetchFailed] = itertools.cycle(answers)

    def get() -> Scrape:
        answer = next(left)
        if isinstance(answer, FetchFailed):
            raise answer
        return answer

    return get


def watching(answers: Sequence[Scrape | FetchFailed], seen: Callable[[], None]) -> Watch:
    ticks = itertools.count()
    return Watch(played(answers), interval_s=0.01, seen=seen, clock=lambda: next(ticks))


def test_failures_are_counted_by_their_reason() -> None:
    slow, final = FetchFailed("slow"), FetchFailed("401", is_final=True)
    watch = watching([SCRAPE, slow, final, slow], lambda: None)
    for _ in range(8):
        watch.try_once()
    assert watch.scrapes == [SCRAPE] * 2
    assert watch.last_reason == "401"
    assert list(watch.gaps()) == [
        Event(0, "gap", None, {"what": "the metrics page (4 of 8 scrapes)", "reason": "slow"}),
        Event(1, "gap", None, {"what": "the metrics page (2 of 8 scrapes)", "reason": "401"}),
    ]


def test_a_server_that_is_gone_at_the_end_is_told_from_a_hiccup() -> None:
    refused = FetchFailed("connection refused")
    for answers, count in (([SCRAPE, refused], 0), ([SCRAPE, refused, refused], 2)):
        watch = watching(answers, lambda: None)
        for _ in answers:
            watch.try_once()
        found = [e.data for e in watch.ending()]
        assert [e["ends"] for e in found] == ([True] if count else [])
        if found:
            assert found[0]["sentence"] == (
                "At the end the server no longer answered: its last answer (running not told, "
                "waiting not told, KV not told) came 0 s before, and 2 scrapes since then failed "
                "(connection refused)."
            )
    watch.try_once()  # it answers again
    assert list(watch.ending()) == []


def test_only_what_is_final_from_the_start_ends_a_watch() -> None:
    watch = watching([FetchFailed("slow"), FetchFailed("401", is_final=True)], lambda: None)
    watch.try_once()
    with pytest.raises(FetchFailed, match="401"):
        watch.try_once()


def test_scrapes_come_at_the_interval_until_it_is_stopped() -> None:
    calls: list[float] = []
    watch = Watch(played([SCRAPE]), interval_s=0.1, seen=lambda: calls.append(time.monotonic()))
    watch.start()
    watch.wait(0.55)
    watch.stop()
    watch.check()
    count = len(calls)
    assert 1 <= count <= 5  # at 0.1, 0.2, 0.3, 0.4 and 0.5 s; fewer on a busy machine
    time.sleep(0.15)
    assert len(calls) == count


def test_what_breaks_a_watch_ends_the_wait_and_is_raised() -> None:
    def broken() -> None:
        raise ValueError("broken")

    watch = watching([SCRAPE], broken)
    watch.start()
    watch.wait(30)
    watch.stop()
    with pytest.raises(ValueError, match="broken"):
        watch.check()
