"""Links side by side: what goes over them, divided by their rates."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stallscope.analyzers.plan.links import compare_links
from stallscope.analyzers.plan.options import PlanOptions
from stallscope.analyzers.plan.planner import plan
from stallscope.profiler.devices import load_device
from stallscope.profiler.models import load_model
from stallscope.reports.plan_report import render_terminal

H100 = load_device("h100-sxm")
OPTIONS = PlanOptions(
    load_model("llama-3-8b"), H100, 2, dtype="bf16", input_tokens=128, output_tokens=16
)


def test_communication_by_hand() -> None:
    """64 sums of a row of 4096 in bf16, half of it twice; 20 µs each to start, 0.75 of the link."""
    links = tuple(replace(H100, link_bytes_per_s=rate) for rate in (450e9, 10e9))
    fast, slow = compare_links(replace(OPTIONS, links=links))
    for row, rate in ((fast, 450e9), (slow, 10e9)):
        moved = 64 * 2 * 0.5 * 4096 * 2 / rate / 0.75
        assert row.communication_s == pytest.approx(64 * 20e-6 + moved)
        assert row.link_bytes_per_s == rate
    assert slow.tpot_s is not None
    assert fast.tpot_s is not None
    more = slow.communication_s - fast.communication_s
    assert slow.tpot_s - fast.tpot_s == pytest.approx(more, rel=0.01)


def test_transfer_by_hand_and_the_first_row_is_the_plan_s_own() -> None:
    devices = tuple(replace(H100, host_link_bytes_per_s=rate) for rate in (64e9, 16e9))
    options = replace(OPTIONS, num_devices=1, cpu_offload_bytes=2 * 10**9, links=devices)
    found = plan(replace(options, device=devices[0]))
    assert [row.transfer_s for row in found.links] == [2e9 / 64e9, 2e9 / 16e9]
    assert found.tpot_s is not None
    assert found.links[0].tpot_s == found.tpot_s.expected
    text = " ".join(render_terminal(found, width=120).split())
    assert "450 GB/s 64.0 GB/s 0 s 31.2 ms" in text


def test_one_link_is_no_comparison() -> None:
    assert plan(replace(OPTIONS, links=(H100,))).links == ()
