"""A scrape of a server's page: the page fetched, and reduced to what engines told."""

from __future__ import annotations

import time
from collections.abc import Callable

from stallscope.profiler.attach.failures import FetchFailed
from stallscope.profiler.attach.fetch import Answer, Fetcher
from stallscope.profiler.metrics_page.scrape import Page, Scrape, scrape_of
from stallscope.profiler.metrics_page.to_capture import capture_of

_OK = 200
_TOLD = {
    401: "401 Unauthorized: it wants a token; give a file with it by --bearer-token-file",
    403: "403 Forbidden: it does not let this token (--bearer-token-file) read its metrics",
    404: "404 Not Found: no page there; start SGLang with --enable-metrics, llama.cpp with "
    "--metrics, or give the URL of the metrics page",
}


class Scraper:
    """Scrapes one server. Raises FetchFailed where the page tells of no engine and no GPU."""

    def __init__(self, fetcher: Fetcher, clock: Callable[[], int] = time.monotonic_ns) -> None:
        self._fetcher = fetcher
        self._is_known = False
        # Read once: the wall clock may be set while a watch goes on.
        self._unix_ns = time.time_ns() - clock()

    def scrape(self) -> Scrape:
        """Get the page once. InputError says what the first one holds where it is no engine's."""
        page = page_of(self._fetcher.get(), self._unix_ns)
        scrape = scrape_of(page)
        if not scrape.values and not scrape.devices:
            if not self._is_known:
                capture_of([page], self._fetcher.address.shown)
            raise FetchFailed("the page holds no metric of an inference engine")
        self._is_known = True
        return scrape


def page_of(answer: Answer, unix_ns: int) -> Page:
    """Return the page that an answer holds; `unix_ns` is wall time at zero of its clock.

    Raises FetchFailed for another status or an HTML page; only errors of the server may pass.
    """
    if answer.status != _OK:
        said = _TOLD.get(answer.status, f"HTTP status {answer.status}")
        raise FetchFailed(said, is_final=answer.status < 500 and answer.status != 429)
    start = answer.body[:512].lstrip().lower()
    if answer.media == "text/html" or start.startswith((b"<!doctype", b"<html")):
        raise FetchFailed(
            "an HTML page, no metrics: give the server's own address and port", is_final=True
        )
    return Page(answer.t_ns, unix_ns + answer.t_ns, answer.body.decode("utf-8", errors="replace"))
