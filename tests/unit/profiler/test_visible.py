"""CUDA's rules for which device is cuda:N, on GPUs made by hand."""

from __future__ import annotations

import pytest

from stallscope.profiler.nvml.failures import Unavailable
from stallscope.profiler.nvml.visible import Gpu, Instance, cuda_devices

# As NVML lists them; two on the bus in the other order.
A = Gpu("GPU-aaaa", "X", "00000000:07:00.0")
B = Gpu("GPU-aabb", "X", "00000000:0B:00.0")
C = Gpu("GPU-cccc", "X", "00000000:01:00.0")
SAME = (A, B, C)
FAST = Gpu("GPU-ffff", "Y", "00000000:81:00.0")
PARTS = tuple(
    Instance(f"MIG-{gi}{ci}", "X MIG", gi, ci) for gi, ci in ((1, 0), (1, 1), (2, 0), (3, 0))
)
CUT = Gpu("GPU-eeee", "X", "00000000:21:00.0", PARTS, is_partitioned=True)
EMPTY = Gpu("GPU-0000", "X", "00000000:22:00.0", is_partitioned=True)


def enumerated(
    gpus: tuple[Gpu, ...], visible: str | None, *, order: str | None = None, driver: int = 570
) -> list[str]:
    environment = {"CUDA_VISIBLE_DEVICES": visible, "CUDA_DEVICE_ORDER": order}
    given = {name: value for name, value in environment.items() if value is not None}
    found = cuda_devices(gpus, given, driver=driver)
    return [d.gpu.uuid if d.instance is None else d.instance.uuid for d in found]


@pytest.mark.parametrize(
    ("visible", "found"),
    [
        (None, ["GPU-cccc", "GPU-aaaa", "GPU-aabb"]),
        ("", []),
        (" ", []),
        ("0", ["GPU-cccc"]),
        ("2,0", ["GPU-aabb", "GPU-cccc"]),
        (" 1 , 2 ", ["GPU-aaaa", "GPU-aabb"]),
        ("0,2,-1,1", ["GPU-cccc", "GPU-aabb"]),  # NVIDIA's own example: it ends at −1
        ("1,7,0", ["GPU-aaaa"]),
        ("-1", []),
        ("NoDevFiles", []),
        ("1gpu2,2", ["GPU-aaaa", "GPU-aabb"]),
        ("1,1", []),  # a repetition hides all
        ("GPU-cccc,GPU-aaaa", ["GPU-cccc", "GPU-aaaa"]),
        ("GPU-cc", ["GPU-cccc"]),
        ("GPU-aa", []),  # two begin so
        ("GPU-cccc,GPU-dddd,GPU-aaaa", ["GPU-cccc"]),
        ("GPU-cccc,GPU-cc", []),
        ("GPU-cccc,0", ["GPU-cccc"]),
    ],
)
def test_visible_devices(visible: str | None, found: list[str]) -> None:
    assert enumerated(SAME, visible) == found


@pytest.mark.parametrize(
    ("visible", "driver", "found"),
    [
        (None, 570, ["MIG-10", "MIG-20", "MIG-30"]),
        (None, 535, ["MIG-10"]),
        ("MIG-20", 535, ["MIG-20"]),
        ("MIG-30,MIG-11", 570, ["MIG-30", "MIG-11"]),
        ("MIG-30,MIG-11", 535, ["MIG-30"]),
        ("MIG-GPU-eeee/1/1", 460, ["MIG-11"]),
        ("GPU-eeee", 535, ["MIG-10"]),
        ("MIG-99", 570, []),
    ],
)
def test_a_partitioned_gpu_is_its_instances(
    visible: str | None, driver: int, found: list[str]
) -> None:
    assert enumerated((CUT,), visible, driver=driver) == found


def test_instances_hide_whole_gpus_from_older_drivers() -> None:
    assert enumerated((A, CUT), None, driver=535) == ["MIG-10"]
    assert enumerated((A, CUT), None) == ["GPU-aaaa", "MIG-10", "MIG-20", "MIG-30"]


def test_a_gpu_that_is_cut_into_nothing_is_no_device() -> None:
    assert enumerated((A, EMPTY), None) == ["GPU-aaaa"]


@pytest.mark.parametrize("visible", [None, "0", "1"])
def test_different_gpus_are_in_cudas_own_order_unless_it_is_fixed(visible: str | None) -> None:
    with pytest.raises(Unavailable, match="CUDA orders different GPUs by speed") as caught:
        enumerated((A, FAST), visible)
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in caught.value.how
    by_bus = {None: ["GPU-aaaa", "GPU-ffff"], "0": ["GPU-aaaa"], "1": ["GPU-ffff"]}[visible]
    assert enumerated((A, FAST), visible, order="PCI_BUS_ID") == by_bus
    assert enumerated((A, FAST), "GPU-f,GPU-a") == ["GPU-ffff", "GPU-aaaa"]
