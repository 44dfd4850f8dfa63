"""The line that says how a watched server stands."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from http.server import BaseHTTPRequestHandler
from pathlib import Path

from scripted_server import send, serving, vllm_page

from stallscope.profiler.attach.gauges import gauges
from stallscope.profiler.metrics_page.scrape import Page, Scrape, scrape_of

SCRIPT = str(Path(sys.executable).with_name("stallscope"))


def scrape(text: str) -> Scrape:
    return scrape_of(Page(0, None, text))


def test_gauges_of_all_engines_in_words() -> None:
    """Requests add up, and the fullest KV cache counts."""
    one = vllm_page(running=3, waiting=1, kv=0.2, engine="0")
    two = vllm_page(running=4, waiting=2, kv=0.504, engine="1")
    assert gauges(scrape(one)) == "3 running, 1 waiting, KV 20 %"
    assert gauges(scrape(one + two)) == "7 running, 3 waiting, KV 50 %"


def test_what_a_page_does_not_tell_is_not_zero() -> None:
    only = 'vllm:num_requests_running{engine="0"} 3\n'
    assert gauges(scrape(only)) == "3 running, waiting not told, KV not told"


def test_what_cannot_be_is_not_told() -> None:
    """The report leaves such values out, so the line shows none of them either."""
    assert gauges(scrape(vllm_page(running=4, waiting=-5, kv=3.0))) == (
        "4 running, waiting not told, KV not told"
    )
    full = vllm_page(running=4, waiting=5, kv=1.02)  # rounding, and blocks that change hands
    assert gauges(scrape(full)) == "4 running, 5 waiting, KV 102 %"


def test_on_a_terminal_one_line_is_kept_up_to_date() -> None:
    def script(handler: BaseHTTPRequestHandler, number: int) -> None:
        waiting = 0 if number < 8 else 40
        kv = 0.2 if number < 8 else 0.999
        send(handler, vllm_page(running=30, waiting=waiting, kv=kv, tokens=9.0 * number).encode())

    master, slave = pty.openpty()
    with serving(script) as served:
        options = ["--interval", "0.1", "--duration", "8", "--format", "json"]
        done = subprocess.run(
            [SCRIPT, "attach", served.url, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=slave,
            timeout=120,
        )
    os.close(slave)
    said = os.read(master, 65536).decode()
    os.close(master)
    assert done.returncode == 0
    first, *updates = said.split("\r\x1b[K")
    assert first.startswith("stallscope: watching ")
    assert len(updates) >= 2  # every three seconds
    assert "0 waiting, KV 20 %" in updates[0]
    assert "40 waiting, KV 100 %: capacity" in updates[-1]
    assert [line.count("\n") for line in updates] == [0] * (len(updates) - 1) + [1]
