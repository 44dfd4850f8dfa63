"""The capture of a watch: what pages told, what this machine's GPUs did, and what was missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from operator import attrgetter

from stallscope.profiler.attach.gpus import ServerGpus
from stallscope.profiler.attach.watch import Watch
from stallscope.profiler.capture import Capture, DeviceSample, Event
from stallscope.profiler.host import tool_facts
from stallscope.profiler.metrics_page.to_capture import capture_of_scrapes


def watched_capture(watch: Watch, gpus: ServerGpus, source: str) -> Capture:
    """Join what was scraped and what was sampled meanwhile: all is on one clock already.

    The GPUs are those of the run where they are all of one known kind. Raises InputError where no
    page told anything.
    """
    pages = capture_of_scrapes(watch.scrapes, source)
    events = (*pages.events, *watch.gaps(), *watch.ending(), *_gpu_events(watch, gpus))
    return replace(
        pages,
        subject=replace(pages.subject, device=gpus.spec or pages.subject.device),
        # What a dcgm-exporter tells on the page is of the server's GPUs, wherever that is.
        device_samples=pages.device_samples
        or tuple(sorted(_samples(gpus.rows), key=attrgetter("t_ns"))),
        events=tuple(sorted(events, key=attrgetter("t_ns"))),
        meta={**pages.meta, "tool": tool_facts(), **_devices(gpus)},
    )


def _samples(rows: Sequence[object]) -> Iterator[DeviceSample]:
    return (row for row in rows if isinstance(row, DeviceSample))


def _gpu_events(watch: Watch, gpus: ServerGpus) -> Iterator[Event]:
    yield from (row for row in gpus.rows if isinstance(row, Event))
    if gpus.devices:
        sentence = (
            "GPU counters are of this machine, where the server's address leads; behind a tunnel "
            "to another machine they are not the server's: leave them out by --no-nvml."
        )
        yield Event(watch.scrapes[0].t_ns, "check", None, {"sentence": sentence})


def _devices(gpus: ServerGpus) -> dict[str, object]:
    if not gpus.devices:
        return {}
    return {"devices": {device.label: device.facts() for device in gpus.devices}}
