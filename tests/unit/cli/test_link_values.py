"""Links as people write them."""

from __future__ import annotations

import pytest

from stallscope.errors import UsageError
from stallscope.link_values import linked_devices, named_link
from stallscope.profiler.devices import load_device

H100, A10G, GB10 = (load_device(name) for name in ("h100-sxm", "a10g", "gb10"))


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("nvlink", 450e9),  # the device's own, one direction
        ("pcie", 64e9),  # by way of the host
        ("PCIe3", 16e9),
        ("pcie4", 32e9),
        ("pcie5", 64e9),
        ("50GB/s", 50e9),
        ("12.5 gb/s", 12.5e9),
        ("400Gbit/s", 50e9),
        ("10GiB/s", 10 * 2**30),
        ("1TB/s", 1e12),
        ("25000000000B/s", 25e9),
    ],
)
def test_a_link_has_its_rate_in_one_direction(text: str, rate: float) -> None:
    found = named_link(text, H100, "--link")
    assert found is not None
    assert found[1] == rate


@pytest.mark.parametrize("text", ["nvlink", "ethernet", "fast", "50", "50GB", ""])
def test_what_a_device_does_not_have_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no link of a10g"):
        named_link(text, A10G, "--link")


def test_pcie_of_a_device_without_a_known_host_link_is_refused() -> None:
    with pytest.raises(UsageError, match="no link of gb10; write ethernet, pcie3"):
        named_link("pcie", GB10, "--link")


def test_each_pair_of_links_is_a_device_of_its_own() -> None:
    found = linked_devices(H100, "nvlink,pcie4,nvlink", "pcie3,20GB/s")
    assert [(d.link_bytes_per_s, d.to_host_bytes_per_s) for d in found] == [
        *((450e9, 16e9), (450e9, 20e9)),
        *((32e9, 16e9), (32e9, 20e9)),
    ]
    assert linked_devices(H100, None, None) == (H100,)
    assert linked_devices(None, None, None) == ()


def test_a_slower_link_between_devices_leaves_the_one_to_the_host() -> None:
    for device in (H100, A10G, GB10):
        (found,) = linked_devices(device, "pcie3", None)
        assert found.link_bytes_per_s == 16e9
        assert found.to_host_bytes_per_s == device.to_host_bytes_per_s
