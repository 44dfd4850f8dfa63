"""Which options an nsys takes: as it says itself, else as its version's guide says."""

from __future__ import annotations

from pathlib import Path

from stallscope.profiler.doctor.surroundings import Surroundings
from stallscope.profiler.nsys.installed import Nsys, find_nsys
from stallscope.profiler.wrap.options import documented, options_of


def test_the_real_one_lists_what_its_guide_describes(nsys: str) -> None:
    place = Surroundings()
    installed = find_nsys(place)
    listed = options_of(place, installed)
    missing = documented(installed.version) - listed
    # Newer ones may drop the name that they replaced.
    assert missing <= {"--gpu-metrics-device"}
    assert ("--gpu-metrics-devices" in listed) or ("--gpu-metrics-device" in listed)


def test_an_nsys_that_shows_no_help_is_taken_at_its_version(tmp_path: Path) -> None:
    path = tmp_path / "nsys"
    path.write_text("#!/bin/sh\necho usage: none; exit 1\n")
    path.chmod(0o755)
    old = options_of(Surroundings(), Nsys(path, "2021.4.1.73"))
    assert old == documented("2021.4.1.73")
    assert "--cuda-graph-trace" not in old


def test_help_is_believed_before_the_version(tmp_path: Path) -> None:
    path = tmp_path / "nsys"
    path.write_text("#!/bin/sh\necho '--trace= --gpu-metrics-devices='\n")
    path.chmod(0o755)
    found = options_of(Surroundings(), Nsys(path, "2024.4.1.1"))
    assert found == {"--trace", "--gpu-metrics-devices"}
