"""What the driver calls a device leads to the table's figures, or to none."""

from __future__ import annotations

import pytest

from stallscope.profiler.known_devices import known_device, table_name


@pytest.mark.parametrize(
    ("driver", "table"),
    [
        ("Tesla T4", "t4"),
        ("NVIDIA A10", "a10"),
        ("NVIDIA A10G", "a10g"),
        ("NVIDIA L4", "l4"),
        ("NVIDIA L40S", "l40s"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
        ("NVIDIA A100-SXM4-40GB MIG 1g.5gb", None),
        ("NVIDIA A100-PCIE-40GB", "a100-pcie-40gb"),
        ("NVIDIA A100 80GB PCIe", "a100-pcie-80gb"),
        ("Tesla V100-SXM2-32GB", "v100-sxm2-32gb"),
        ("Tesla V100-SXM3-32GB", None),
        ("Tesla V100-PCIE-16GB", "v100-pcie-16gb"),
        ("NVIDIA A30", "a30"),
        ("NVIDIA A40", "a40"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H100 NVL", None),
        ("NVIDIA H200", "h200-sxm"),
        ("NVIDIA H200 NVL", None),
        ("NVIDIA B200", "b200"),
        ("NVIDIA GB200", None),
        ("NVIDIA GB10", "gb10"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090 Laptop GPU", None),
        ("NVIDIA GeForce RTX 3090 Ti", "rtx-3090-ti"),
        ("NVIDIA GeForce RTX 4080", "rtx-4080"),
        ("NVIDIA GeForce RTX 4080 SUPER", None),
        ("NVIDIA GeForce RTX 5090", "rtx-5090"),
        ("NVIDIA GeForce RTX 5080", "rtx-5080"),
        ("AMD Instinct MI210", "mi210"),
        ("AMD Instinct MI250", None),
        ("AMD Instinct MI300X", "mi300x"),
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("AMD Instinct MI355X", "mi355x"),
        ("AMD Instinct MI355X OAM", "mi355x"),
    ],
)
def test_driver_names_lead_to_the_table_where_they_mean_it(driver: str, table: str | None) -> None:
    assert table_name(driver) == table


def test_the_size_of_the_memory_is_the_drivers() -> None:
    spec = known_device("NVIDIA A100-SXM4-40GB", 42_949_672_960 - 4096)
    assert spec is not None
    assert (spec.name, spec.memory_bytes) == ("a100-sxm4-40gb", 42_949_668_864)
    assert known_device("NVIDIA H100 NVL", 1) is None
