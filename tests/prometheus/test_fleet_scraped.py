"""`stallscope attach --prometheus` with a real Prometheus that scrapes two servers of our own."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from real_prometheus import free_port, scraping, wait_for_samples

SCRIPT = str(Path(sys.executable).with_name("stallscope"))
pytestmark = [pytest.mark.slow, pytest.mark.prometheus]


class Load(NamedTuple):
    """A server's gauges, and the tokens it makes a second."""

    running: int
    waiting: int
    kv: float
    rate: float


STARVED = Load(running=12, waiting=30, kv=0.998, rate=120)
EASY = Load(running=14, waiting=0, kv=0.31, rate=560)


@contextmanager
def served(load: Load) -> Iterator[str]:
    """Serve a page as vLLM writes it, with counters that rise at the load's rate."""
    begin = time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            tokens = load.rate * (time.monotonic() - begin)
            labels = '{engine="0",model_name="m"}'
            values = {
                "num_requests_running": load.running,
                "num_requests_waiting": load.waiting,
                "kv_cache_usage_perc": load.kv,
                "generation_tokens_total": tokens,
                "prompt_tokens_total": 2 * tokens,
            }
            lines = [f"vllm:{name}{labels} {value}\n" for name, value in values.items()]
            self.send_response(200)
            self.send_header("Content-Type", "text/plain; version=0.0.4")
            self.end_headers()
            self.wfile.write("".join(lines).encode())

        def log_message(self, *_: object) -> None:
            """Keep the output of tests clean."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


class Fleet(NamedTuple):
    """Where Prometheus answers, and the two servers' instance labels."""

    url: str
    starved: str
    easy: str


@pytest.fixture(scope="module")
def fleet(prometheus: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fleet]:
    with ExitStack() as stack:
        starved = stack.enter_context(served(STARVED))
        easy = stack.enter_context(served(EASY))
        folder = tmp_path_factory.mktemp("prometheus")
        url = stack.enter_context(scraping(prometheus, folder, [starved, easy]))
        wait_for_samples(url, "vllm:num_requests_running", 12)
        yield Fleet(url, starved, easy)


Ask = Callable[..., subprocess.CompletedProcess[str]]


def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [SCRIPT, "attach", "--prometheus", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def judged(*arguments: str) -> dict[str, Any]:
    done = ask(*arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_starved_replica_and_its_limit_are_named(fleet: Fleet) -> None:
    report = judged(fleet.url, "--select", '{job="vllm"}', "--since", "5m")
    first, second = report["replicas"]
    assert (first["replica"], first["class"], first["load"]) == (
        fleet.starved,
        "capacity",
        "overloaded",
    )
    assert (second["replica"], second["load"]) == (fleet.easy, "served")
    assert (first["running"], first["waiting"], first["kv_used"]) == (12, 30, 0.998)
    assert first["output_tokens_per_s"] == pytest.approx(120, rel=0.2)
    assert second["output_tokens_per_s"] == pytest.approx(560, rel=0.2)
    assert report["verdict"]["class"] == "capacity"
    assert f"Capacity limits 1 of 2 replicas ({fleet.starved})" in report["verdict"]["sentence"]
    # 42 requests are in flight on one and 14 on the other, which has none waiting.
    assert report["fleet"]["imbalance"] == (
        f"{fleet.starved} has 30.0 requests waiting while {fleet.easy} has room (14.0 in flight): "
        "the load is not spread by what each can take."
    )
    assert report["fleet"]["stragglers"] == []  # slower, but the full pool says why
    assert report["capture"]["duration_s"] > 8


def test_the_table_in_the_report_for_people(fleet: Fleet) -> None:
    text = ask(fleet.url, "--since", "5m").stdout
    assert "Replicas" in text
    rows = [line for line in text.splitlines() if line.strip().startswith("127.0.0.1:")]
    assert fleet.starved in rows[0]
    assert "capacity" in rows[0]
    assert fleet.easy in rows[1]


def test_one_replica_alone_is_reported_as_such(fleet: Fleet) -> None:
    report = judged(fleet.url, "--select", f'instance="{fleet.easy}"', "--since", "5m")
    assert report["replicas"] == []
    assert report["verdict"]["load"] == "served"
    assert fleet.easy in report["capture"]["sources"][0]["path"]


@pytest.mark.parametrize(
    ("select", "said"),
    [
        (
            '{job="other"}',
            'no series of an inference engine within {job="other"} in that time; '
            "jobs that have some: vllm",
        ),
        ('{job=~"("}', "Prometheus refuses: "),
        ('{job="a" instance="b"}', "Prometheus refuses: "),
    ],
)
def test_what_prometheus_has_not_is_one_line(fleet: Fleet, select: str, said: str) -> None:
    done = ask(fleet.url, "--select", select, "--since", "5m")
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_week_is_read_in_steps_that_prometheus_gives(fleet: Fleet) -> None:
    """At the scrapes' interval of 1 s a week has 604,801 points, 55 times the 11,000 allowed."""
    report = judged(fleet.url, "--since", "1w")
    assert [r["replica"] for r in report["replicas"]] == [fleet.starved, fleet.easy]


def test_no_prometheus_there() -> None:
    done = ask(f"http://127.0.0.1:{free_port()}")
    assert done.returncode == 1
    assert "connection refused" in done.stderr
