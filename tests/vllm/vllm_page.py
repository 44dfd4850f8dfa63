"""What a server with one engine says of itself now, and waiting until it says something."""

from __future__ import annotations

import re
import time
import urllib.request
from collections.abc import Callable
from typing import NamedTuple

PATIENCE_S = 240.0


class Page(NamedTuple):
    """The gauges of one page."""

    running: float
    waiting: float
    kv_used: float


def read_page(url: str) -> Page:
    """Ask for the page of a server."""
    with urllib.request.urlopen(f"{url}/metrics", timeout=30) as answer:
        text = answer.read().decode()
    names = ("num_requests_running", "num_requests_waiting", "kv_cache_usage_perc")
    return Page(*(_value(text, name) for name in names))


def _value(text: str, name: str) -> float:
    found = re.search(rf"^vllm:{name}(?:{{[^}}]*}})? (\S+)$", text, re.M)
    if found is None:
        raise ValueError(f"the page has no {name}")
    return float(found[1])


def wait_until(url: str, holds: Callable[[Page], bool]) -> None:
    """Look twice a second. Raises TimeoutError after some minutes."""
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        page = read_page(url)
        if holds(page):
            return
        time.sleep(0.5)
    raise TimeoutError(f"{url}: {page} after {PATIENCE_S:.0f} s")
