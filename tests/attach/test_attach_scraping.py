"""Pages and their times, whatever the wall clock does."""

from __future__ import annotations

import itertools
import time
from http.server import BaseHTTPRequestHandler

import pytest
from scripted_server import send, serving, vllm_page

from stallscope.errors import InputError
from stallscope.profiler.attach.address import parse_address
from stallscope.profiler.attach.failures import FetchFailed
from stallscope.profiler.attach.fetch import Fetcher
from stallscope.profiler.attach.scraping import Scraper
from stallscope.profiler.metrics_page.to_capture import capture_of_scrapes

_S = 1_000_000_000
PAGE = vllm_page().encode()


def test_a_wall_clock_that_is_set_back_moves_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """It says 1,000 s as the watch begins, and 500 s at every later look."""
    wall = itertools.chain([1000 * _S], itertools.repeat(500 * _S))
    ticks = itertools.count(7 * _S, _S)
    monkeypatch.setattr(time, "time_ns", lambda: next(wall))

    def clock() -> int:
        return next(ticks)

    with serving(lambda handler, number: send(handler, PAGE)) as served:
        fetcher = Fetcher(parse_address(served.url, path="/metrics"), clock=clock)
        scraper = Scraper(fetcher, clock)
        scrapes = [scraper.scrape() for _ in range(3)]
        fetcher.close()
    assert [s.t_ns for s in scrapes] == [8 * _S, 9 * _S, 10 * _S]
    assert [s.unix_ns for s in scrapes] == [1001 * _S, 1002 * _S, 1003 * _S]
    capture = capture_of_scrapes(scrapes, "here")
    assert not any("jumps back" in str(e.data.get("sentence")) for e in capture.events)
    assert capture.meta["clock"] == {"unix_ns": 1001 * _S, "t_ns": 8 * _S}


def test_a_page_of_something_else_is_named_at_first_and_counted_later() -> None:
    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        send(handler, PAGE if number == 1 else b"node_load1 1\n")

    with serving(script) as served:
        fetcher = Fetcher(parse_address(served.url, path="/metrics"))
        scraper = Scraper(fetcher)
        with pytest.raises(InputError, match="it holds metrics of node_exporter"):
            scraper.scrape()
        assert scraper.scrape().values
        with pytest.raises(FetchFailed, match="the page holds no metric of an inference engine"):
            scraper.scrape()
        fetcher.close()
