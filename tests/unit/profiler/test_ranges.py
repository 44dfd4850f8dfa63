"""NVTX ranges: domain, name and payload as tracers see them, and no nvtx at all."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stallscope.profiler.ranges import phase_range


def test_a_range_carries_domain_name_and_tokens() -> None:
    nvtx = pytest.importorskip("nvtx")
    entered = phase_range("decode", 8)
    assert isinstance(entered, nvtx.annotate)
    if not hasattr(entered, "attributes"):
        pytest.skip("nvtx 0.2.12 and later make nothing while no tool listens")
    assert entered.domain.name == "stallscope"
    assert entered.attributes.message.string == "decode"
    assert entered.attributes.payload == 8
    assert phase_range("decode", 9).attributes.payload == 9  # type: ignore[attr-defined]
    assert entered.attributes.payload == 8


def test_one_object_serves_nested_and_repeated_entries() -> None:
    assert phase_range("prefill", 512) is phase_range("prefill", 512)
    with phase_range("prefill", 512), phase_range("prefill", 512):
        pass
    with phase_range("prefill", 512):
        pass


@pytest.mark.parametrize(
    "circumstance",
    ["import sys; sys.modules['nvtx'] = None", "import os; os.environ['NVTX_DISABLE'] = '1'"],
    ids=["not installed", "disabled"],
)
def test_without_nvtx_ranges_do_nothing(circumstance: str) -> None:
    program = f"""{circumstance}
from stallscope.profiler.ranges import phase_range
with phase_range("decode", 8), phase_range("decode", 8):
    print("inside")
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("inside\n", "")


def test_importing_the_recorder_does_not_load_nvtx() -> None:
    program = "import sys, stallscope.profiler.recorder; print('nvtx' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "False\n"
