"""Whatever zones the clocks are of, and in whatever order files come, the verdict is the same."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from joined import read_together
from scripted_load import LOAD, bench_json, gpu_csv, metrics_pages, server_log

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Verdict
from stallscope.profiler.joining.candidates import ZONES_NS

LOCAL = {"server.log": server_log, "gpu.csv": gpu_csv, "bench.json": bench_json}
NAMES = (*LOCAL, "metrics.prom")  # whose time is Unix time: no zone
PAGES = metrics_pages(LOAD)


def verdict(names: Sequence[str], ahead_s: Mapping[str, float]) -> Verdict:
    """Judge what these sources, in this order and on such clocks, say together."""
    files = {
        name: LOCAL[name](LOAD, ahead_s=ahead_s.get(name, 0.0)) if name in LOCAL else PAGES
        for name in names
    }
    with tempfile.TemporaryDirectory() as folder:
        return diagnose(read_together(Path(folder), files)).verdict


@lru_cache
def plain(names: frozenset[str]) -> Verdict:
    return verdict(sorted(names), {})


@settings(max_examples=20, deadline=None)
@given(
    names=st.permutations(NAMES).flatmap(lambda n: st.integers(2, 4).map(lambda i: n[:i])),
    zone_s=st.sampled_from([z / 1e9 for z in ZONES_NS]),
    moved=st.sampled_from(sorted(LOCAL)),
)
def test_a_zone_and_an_order_change_no_verdict(names: list[str], zone_s: float, moved: str) -> None:
    assert verdict(names, {moved: zone_s}) == plain(frozenset(names))
