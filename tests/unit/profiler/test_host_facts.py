"""Facts about the machine that a capture carries."""

from __future__ import annotations

import os

import psutil
import pytest

from stallscope.profiler.host import host_facts


def test_cpus_are_counted_as_their_time_is() -> None:
    """The time of all CPUs together cannot pass faster than this many times the clock's."""
    facts = host_facts()
    assert facts["cpus"] == os.cpu_count()
    assert facts["counted_cpus"] == len(psutil.cpu_times(percpu=True))


def test_figures_that_are_hidden_are_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden(**_: object) -> object:
        raise PermissionError("/proc/stat")

    monkeypatch.setattr(psutil, "cpu_times", hidden)
    assert host_facts()["counted_cpus"] is None
