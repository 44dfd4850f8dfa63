"""A real Prometheus scrapes two real vLLM servers, one of them starved of KV room."""

from __future__ import annotations

from pathlib import Path

import pytest
from real_prometheus import scraping, wait_for_samples
from vllm_attach import loaded, stallscope
from vllm_page import Page, wait_until
from vllm_server import Server

pytestmark = [pytest.mark.vllm, pytest.mark.prometheus, pytest.mark.timeout(900)]


def many_wait_for_room(page: Page) -> bool:
    return page.kv_used >= 0.9 and page.waiting >= 15


def test_the_starved_replica_and_its_limit_are_named(
    capped: Server, small_pool: Server, prometheus: str, tmp_path: Path
) -> None:
    starved, easy = (server.url.removeprefix("http://") for server in (small_pool, capped))
    with (
        scraping(prometheus, tmp_path, [starved, easy]) as url,
        loaded(capped, ("--clients", "2", "--output", "64")),
        loaded(small_pool, ("--clients", "48", "--input", "128", "--output", "640")),
    ):
        wait_until(small_pool.url, many_wait_for_room)
        wait_for_samples(url, "vllm:num_requests_running", 20)
        asked = ("--select", '{job="vllm"}', "--since", "30s")
        report = stallscope(tmp_path / "fleet.json", "attach", "--prometheus", url, *asked)
    first, second = report["replicas"]
    assert (first["replica"], first["class"], first["load"]) == (starved, "capacity", "overloaded")
    assert first["sentence"].startswith("The KV cache is full")
    assert (second["replica"], second["load"]) == (easy, "served")
    assert report["verdict"]["class"] == "capacity"
    assert starved in report["verdict"]["sentence"]
    assert starved in report["fleet"]["imbalance"]
