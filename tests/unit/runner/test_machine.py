"""What the machine says about itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.runner.devices import table_name
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


@pytest.mark.parametrize(
    ("cuda", "table"),
    [
        ("Tesla T4", "t4"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100-PCIE-40GB", None),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", None),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GB200", None),
        ("NVIDIA GB10", "gb10"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA GeForce RTX 3090 Ti", None),
    ],
)
def test_cuda_names_lead_to_the_table_only_where_they_mean_it(cuda: str, table: str | None) -> None:
    assert table_name(cuda) == table
