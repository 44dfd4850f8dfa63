"""Whatever zones the clocks are of, and in whatever order files come, the verdict is the same."""

from __future__ import annotations

import tempfile
from itertools import permutations
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st
from joined import read_together
from scripted_load import LOAD, gpu_csv, server_log

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Verdict
from stallscope.profiler.joining.candidates import ZONES_NS


def verdict(log_s: float, csv_s: float, order: tuple[str, ...]) -> Verdict:
    files = {"server.log": server_log(LOAD, ahead_s=log_s), "gpu.csv": gpu_csv(LOAD, ahead_s=csv_s)}
    with tempfile.TemporaryDirectory() as folder:
        capture = read_together(Path(folder), {name: files[name] for name in order})
    return diagnose(capture).verdict


ORDERS = tuple(permutations(("server.log", "gpu.csv")))
PLAIN = verdict(0, 0, ORDERS[0])


@settings(max_examples=15, deadline=None)
@given(
    zone_s=st.sampled_from([z / 1e9 for z in ZONES_NS]),
    is_log=st.booleans(),
    order=st.sampled_from(ORDERS),
)
def test_a_zone_changes_no_verdict(zone_s: float, is_log: bool, order: tuple[str, ...]) -> None:
    found = verdict(zone_s if is_log else 0.0, 0.0 if is_log else zone_s, order)
    assert found == PLAIN
