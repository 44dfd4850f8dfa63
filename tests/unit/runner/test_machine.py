"""What the machine says about itself."""

from __future__ import annotations

from pathlib import Path

from stallscope.runner.machine import host_memory_bytes, last_level_cache_bytes


def test_the_largest_cache_counts(tmp_path: Path) -> None:
    for index, size in enumerate(("32K", "1024K", "480M")):
        (tmp_path / f"index{index}").mkdir()
        (tmp_path / f"index{index}" / "size").write_text(f"{size}\n")
    assert last_level_cache_bytes(tmp_path) == 480 * 1024 * 1024


def test_a_hidden_cache_is_not_known(tmp_path: Path) -> None:
    assert last_level_cache_bytes(tmp_path) is None


def test_available_memory_is_part_of_the_total() -> None:
    total, available = host_memory_bytes()
    kernel = Path("/proc/meminfo").read_text().split()
    assert 0 < available <= total <= int(kernel[1]) * 1024
