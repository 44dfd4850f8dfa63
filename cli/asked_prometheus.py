"""The steps of `stallscope attach --prometheus`: read the fleet, and a capture for each replica."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from stallscope.errors import InputError
from stallscope.output import note

if TYPE_CHECKING:
    from stallscope.profiler.attach.access import Access
    from stallscope.profiler.attach.address import Address
    from stallscope.profiler.capture import Capture
    from stallscope.profiler.prometheus.fleet import Fleet

TIMEOUT_S = 60.0  # of a query; Prometheus itself gives up after two minutes
MISSED = 3  # readings in a row that a scraped server may miss without a word
MOST_BYTES = 128 * 2**20


@dataclass(frozen=True, slots=True)
class FleetPlan:
    """Which Prometheus to ask, for which series (label matchers), of the last `since_s`."""

    address: Address
    access: Access
    matchers: str
    since_s: int


def fleet_plan(url: str, access: Access, *, select: str, since: str) -> FleetPlan:
    """Check what to ask before anything is asked. Raises UsageError."""
    from stallscope.profiler.attach.address import parse_address
    from stallscope.profiler.prometheus.selector import matchers
    from stallscope.profiler.prometheus.window import parse_duration

    return FleetPlan(
        parse_address(url, path="/"), access, matchers(select), parse_duration(since, "--since")
    )


def read_replicas(plan: FleetPlan) -> tuple[dict[str, Capture], tuple[str, ...]]:
    """Return a capture for each engine of each replica, and sentences on how they were read."""
    from stallscope.profiler.attach.fetch import Fetcher, Patience
    from stallscope.profiler.metrics_page.by_engine import by_engine
    from stallscope.profiler.metrics_page.to_capture import capture_of_scrapes
    from stallscope.profiler.prometheus.api import Api
    from stallscope.profiler.prometheus.fleet import read_fleet

    fetcher = Fetcher(plan.address, plan.access, Patience(TIMEOUT_S, MOST_BYTES))
    api = Api(fetcher)
    try:
        fleet = read_fleet(api, plan.matchers, since_s=plan.since_s, end_s=time.time())
    finally:
        fetcher.close()
    captures: dict[str, Capture] = {}
    for replica, scrapes in fleet.replicas.items():
        engines = by_engine(scrapes)
        for engine, own in engines.items():
            name = replica if len(engines) == 1 else f"{replica}/{engine}"
            captures[name] = capture_of_scrapes(own, f"{replica} by {api.shown}")
    if not captures:
        raise InputError(f"{api.shown}: no series tells how many requests an engine runs")
    if len(captures) > 1:
        note(f"judging {len(captures)} engines that {api.shown} knows")
    return captures, how_read(fleet)


def how_read(fleet: Fleet) -> tuple[str, ...]:
    """Say who was silent at the end, and where less was read than Prometheus has."""
    step_s, scraped_s = fleet.window.step_s, fleet.interval_s
    said = [
        f"{name} told nothing in the last {silent_s:,.0f} s: is it down, or no longer scraped?"
        for name, silent_s in fleet.silent_s().items()
        if silent_s > (MISSED + 0.5) * step_s
    ]
    if step_s > scraped_s:
        said.append(
            f"Prometheus' samples of every {scraped_s:g} s were read every {step_s:g} s, as there "
            "are so many: --since a shorter time sees more."
        )
    return tuple(said)
