"""What a scrape shows at a glance: how many requests run and wait, and how full the KV cache is."""

from __future__ import annotations

from stallscope.profiler.metrics_page.plausible import can_be
from stallscope.profiler.metrics_page.scrape import Scrape


def gauges(scrape: Scrape) -> str:
    """Say how many requests run and wait in all engines, and how full the fullest KV cache is."""
    engines = list(scrape.values.values())
    if not engines and scrape.devices:
        return "GPUs alone"

    def told_by_all(name: str) -> list[float]:
        return [e[name] for e in engines if name in e and can_be(name, e[name])]

    told = []
    for name in ("running", "waiting"):
        values = told_by_all(name)
        told.append(f"{sum(values):.0f} {name}" if values else f"{name} not told")
    used = told_by_all("kv_used_fraction")
    return ", ".join([*told, f"KV {max(used) * 100:.0f} %" if used else "KV not told"])
