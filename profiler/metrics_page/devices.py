"""GPU counters of dcgm-exporter that stand on the same pages, as on a federated one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.metrics_page.scrape import Scrape
from stallscope.profiler.telemetry.dcgm_page import read_dcgm_page
from stallscope.profiler.telemetry.to_capture import capture_of as capture_of_telemetry
from stallscope.profiler.wall_clock import wall_clock

_ALONE = (
    "The page is of dcgm-exporter: it tells of GPUs, and nothing of what was asked of the engine. "
    "Watch the engine's own address too."
)


def with_devices(capture: Capture, scrapes: Sequence[Scrape], source: str) -> Capture:
    """Add the GPUs' samples, on the clock of the pages."""
    if not any(scrape.devices for scrape in scrapes):
        return capture
    of_gpus = capture_of_telemetry(read_dcgm_page(_lines(scrapes)), source)
    pages, gpus = wall_clock(capture), wall_clock(of_gpus)
    shift_ns = scrapes[0].t_ns
    if pages is not None and gpus is not None:
        shift_ns = gpus.zero_ns - pages.zero_ns
    return replace(
        capture,
        subject=replace(capture.subject, device=of_gpus.subject.device),
        device_samples=tuple(s._replace(t_ns=s.t_ns + shift_ns) for s in of_gpus.device_samples),
        events=tuple(
            sorted(
                (*capture.events, *(e._replace(t_ns=e.t_ns + shift_ns) for e in of_gpus.events)),
                key=lambda e: e.t_ns,
            )
        ),
        sources=(*capture.sources, *(s._replace(id=1) for s in of_gpus.sources)),
        meta={**of_gpus.meta, **capture.meta},
    )


def of_devices_alone(scrapes: Sequence[Scrape], source: str) -> Capture | None:
    """Return what pages of dcgm-exporter tell, with times on the clock of the pages; else None."""
    if not any(scrape.devices for scrape in scrapes):
        return None
    found = capture_of_telemetry(read_dcgm_page(_lines(scrapes)), source)
    shift_ns = scrapes[0].t_ns
    alone = Event(shift_ns, "check", None, {"sentence": _ALONE})
    moved = (e._replace(t_ns=e.t_ns + shift_ns) for e in found.events)
    unix_ns = scrapes[0].unix_ns
    clock = None if unix_ns is None else {"unix_ns": unix_ns, "t_ns": shift_ns}
    return replace(
        found,
        device_samples=tuple(s._replace(t_ns=s.t_ns + shift_ns) for s in found.device_samples),
        events=(alone, *moved),
        meta={**found.meta, "clock": clock},
    )


def _lines(scrapes: Sequence[Scrape]) -> list[str]:
    lines = []
    for scrape in scrapes:
        if scrape.unix_ns is not None:
            lines.append(f"# scrape_unix_ms {scrape.unix_ns // 1_000_000}\n")
        lines += scrape.devices
    return lines
