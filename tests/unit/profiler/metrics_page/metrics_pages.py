"""Pages of our own making, with the metrics that each engine and version has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.metrics_page.reader import read_metrics
from stallscope.profiler.metrics_page.scrape import Page
from stallscope.profiler.metrics_page.to_capture import capture_of

S = 1_000_000_000
UNIX_MS = 1_800_000_000_000


def page(prefix: str, values: Mapping[str, float], labels: str = "") -> str:
    """Write a page: metrics without their prefix, "name" or "name{more=labels}", and values."""
    lines = []
    for name, value in values.items():
        metric, _, more = name.partition("{")
        shown = ",".join(x for x in (labels, more.removesuffix("}")) if x)
        lines.append(f"{prefix}{metric}{f'{{{shown}}}' if shown else ''} {value}\n")
    return "".join(lines)


def series(*pages: str, every_ms: int = 1000) -> str:
    """Put whole pages behind the time at which each was scraped."""
    return "".join(
        f"# scrape_unix_ms {UNIX_MS + i * every_ms}\n{text}" for i, text in enumerate(pages)
    )


def read(folder: Path, text: str | bytes) -> Capture:
    """Write a file and read it."""
    path = folder / "page.prom"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_metrics(path)


def scraped(*pages: str) -> Capture:
    """Read pages as if scraped once a second."""
    return capture_of(
        [Page(7 * S + i * S, UNIX_MS * 1_000_000 + i * S, text) for i, text in enumerate(pages)],
        "http://host:8000/metrics",
    )


def told(capture: Capture, engine: str = "0") -> dict[str, float]:
    """Return what an engine told last, by name."""
    return {s.name: s.value for s in capture.engine_samples if s.engine == engine}


def over_time(
    samples: Iterable[EngineSample], name: str, engine: str = "0"
) -> list[tuple[float, float]]:
    """Return one quantity as (second, value)."""
    return [(s.t_ns / S, s.value) for s in samples if s.name == name and s.engine == engine]


def sentences(capture: Capture) -> list[str]:
    """Return what the reader says of the pages."""
    return [e.data["sentence"] for e in capture.events if e.kind == "check"]


def unseen(capture: Capture) -> dict[str, str]:
    """Return what the pages do not tell, and why."""
    return {e.data["what"]: e.data["reason"] for e in capture.events if e.kind == "not_observable"}
