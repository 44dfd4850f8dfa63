"""A real Prometheus server on 127.0.0.1 that scrapes what a test names."""

from __future__ import annotations

import json
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

CONFIG = """
global: {{scrape_interval: 1s, scrape_timeout: 1s}}
scrape_configs:
  - job_name: {job}
    static_configs:
      - targets: {targets}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@contextmanager
def scraping(
    program: str, folder: Path, targets: Sequence[str], *, job: str = "vllm"
) -> Iterator[str]:
    """Scrape host:port targets every second until the block ends; yield the server's address."""
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(job=job, targets=json.dumps(list(targets))))
    port = free_port()
    command = [
        program,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        "--log.level=error",
    ]
    url = f"http://127.0.0.1:{port}"
    with subprocess.Popen(command, cwd=folder) as server:
        try:
            wait_for_samples(url, "up", 1, server)
            yield url
        finally:
            server.terminate()


def wait_for_samples(
    url: str, selector: str, count: int, server: subprocess.Popen[bytes] | None = None
) -> None:
    """Wait until every series of a selector has so many samples of the last five minutes."""
    query = quote(f"min(count_over_time({selector}[5m]))")
    end = time.monotonic() + 120
    while time.monotonic() < end:
        assert server is None or server.poll() is None, "Prometheus ended"
        try:
            with urllib.request.urlopen(f"{url}/api/v1/query?query={query}", timeout=5) as answer:
                found = json.load(answer)["data"]["result"]
        except OSError:
            found = []
        if found and float(found[0]["value"][1]) >= count:
            return
        time.sleep(0.2)
    raise AssertionError(f"{selector} never had {count} samples")
