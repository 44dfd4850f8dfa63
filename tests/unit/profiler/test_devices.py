"""The device table holds the vendors' figures with their sources; a user's file is checked."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pytest

from stallscope.errors import InputError
from stallscope.profiler.devices import device_names, load_device, load_device_file
from stallscope.profiler.spec import DeviceSpec

NAMES = (
    *("t4", "v100-sxm2-16gb", "v100-sxm2-32gb", "v100-pcie-16gb", "v100-pcie-32gb"),
    *("a10", "a10g", "a30", "a40", "l4", "l40s"),
    *("a100-sxm4-40gb", "a100-sxm4-80gb", "a100-pcie-40gb", "a100-pcie-80gb"),
    *("h100-sxm", "h100-pcie", "h200-sxm", "b200", "gb10"),
    *("rtx-3090", "rtx-3090-ti", "rtx-4090", "rtx-4080", "rtx-5090", "rtx-5080"),
    *("mi210", "mi250", "mi300x", "mi355x"),
)


def test_table_holds_the_contract_names() -> None:
    assert device_names() == NAMES
    assert load_device("A100-SXM4-80GB") == load_device("a100-sxm4-80gb")


def test_figures_that_other_numbers_rest_on() -> None:
    a100 = load_device("a100-sxm4-40gb")
    assert a100.peak_flops["fp16"] == 312e12
    assert a100.memory_bytes_per_s == 1555e9
    # The document's ridge: 312e12 / 1555e9 = 200.6 FLOP/B.
    assert round(a100.peak_flops["fp16"] / a100.memory_bytes_per_s, 1) == 200.6
    assert load_device("a100-sxm4-80gb").memory_bytes_per_s == 2039e9
    assert load_device("a10").peak_flops["fp16"] == 125e12
    assert load_device("a10g").peak_flops["fp16"] == 70e12
    assert load_device("h200-sxm").memory_bytes_per_s == 4800e9


@pytest.mark.parametrize(
    ("name", "gb_per_s", "bus_bits", "gbit_per_pin"),
    [
        ("t4", 320, 256, 10.0),
        ("a10", 600, 384, 12.5),
        ("a10g", 600, 384, 12.5),
        ("l4", 300, 192, 12.5),
        ("l40s", 864, 384, 18.0),
        ("a100-sxm4-40gb", 1555, 5120, 2.43),
        ("rtx-3090", 936, 384, 19.5),
        ("rtx-4090", 1008, 384, 21.0),
        ("a30", 933, 3072, 2.43),
        ("a40", 696, 384, 14.5),
        ("a100-pcie-40gb", 1555, 5120, 2.43),
        ("a100-pcie-80gb", 1935, 5120, 3.024),
        ("rtx-3090-ti", 1008, 384, 21.0),
        ("rtx-4080", 716.8, 256, 22.4),
        ("rtx-5090", 1792, 512, 28.0),
        ("rtx-5080", 960, 256, 30.0),
        ("mi210", 1638.4, 4096, 3.2),
        ("mi250", 3276.8, 8192, 3.2),
    ],
)
def test_bandwidth_is_bus_width_times_pin_rate(
    name: str, gb_per_s: float, bus_bits: int, gbit_per_pin: float
) -> None:
    device = load_device(name)
    assert device.memory_bytes_per_s == gb_per_s * 1e9
    assert device.memory_bytes_per_s == pytest.approx(bus_bits * gbit_per_pin * 1e9 / 8, rel=1e-3)


@pytest.mark.parametrize(
    ("name", "sms", "fma_per_clock", "boost_ghz"),
    [
        # fp16 with fp32 accumulation on tensor cores; 2 FLOP each FMA.
        ("t4", 40, 512, 1.59),
        ("a100-sxm4-40gb", 108, 1024, 1.41),
        ("h100-sxm", 132, 2048, 1.83),
        ("rtx-3090", 82, 256, 1.695),
        ("rtx-4090", 128, 256, 2.52),
        ("l40s", 142, 512, 2.49),
        ("v100-sxm2-16gb", 80, 512, 1.53),
        ("v100-pcie-32gb", 80, 512, 1.38),
        ("a30", 56, 1024, 1.44),
        ("a40", 84, 512, 1.74),
        ("a100-pcie-80gb", 108, 1024, 1.41),
        ("h100-pcie", 114, 2048, 1.62),
        ("rtx-3090-ti", 84, 256, 1.86),
        ("rtx-4080", 76, 256, 2.505),
        ("rtx-5090", 170, 256, 2.407),
        ("rtx-5080", 84, 256, 2.617),
        # Compute units of AMD's, 512 FMA each in CDNA 2 and twice that in each later one.
        ("mi210", 104, 512, 1.7),
        ("mi250", 208, 512, 1.7),
        ("mi300x", 304, 1024, 2.1),
        ("mi355x", 256, 2048, 2.4),
    ],
)
def test_fp16_peak_is_dense(name: str, sms: int, fma_per_clock: int, boost_ghz: float) -> None:
    peak = load_device(name).peak_flops["fp16"]
    assert peak == pytest.approx(2 * sms * fma_per_clock * boost_ghz * 1e9, rel=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_names_its_source(name: str) -> None:
    device = load_device(name)
    unsourced = {"name", "kind", "is_cpu", "sources"}
    given = {f.name for f in fields(DeviceSpec) if getattr(device, f.name) not in (None, ())}
    assert set(device.sources) == given - unsourced
    assert all("https://" in source for source in device.sources.values())


@pytest.mark.parametrize("name", NAMES)
def test_peaks_are_in_order(name: str) -> None:
    peaks = load_device(name).peak_flops
    order = [d for d in ("fp32", "tf32", "bf16", "fp8", "fp4") if d in peaks]
    assert [peaks[d] for d in order] == sorted(peaks[d] for d in order)
    if "bf16" in peaks:
        assert peaks["bf16"] == peaks["fp16"]


def test_what_a_chip_lacks_is_absent() -> None:
    assert "bf16" not in load_device("t4").peak_flops
    assert "fp8" not in load_device("a100-sxm4-80gb").peak_flops
    assert load_device("a10g").power_w is None


def test_unknown_device_lists_the_nearest() -> None:
    with pytest.raises(InputError, match=r"did you mean a100-sxm4-40gb or a100-sxm4-80gb or "):
        load_device("a100")
    with pytest.raises(InputError, match=r"known: t4, v100-.*mi355x"):
        load_device("qqqq")


GIVEN: dict[str, Any] = {
    "name": "mine",
    "peak_flops": {"fp32": 1e12, "bf16": 2e12},
    "memory_bytes_per_s": 3e10,
}


def load(folder: Path, **changes: Any) -> DeviceSpec:
    file = folder / "gpu.json"
    file.write_text(json.dumps({**GIVEN, **changes}))
    return load_device_file(file)


def test_file_with_the_least_that_is_needed(tmp_path: Path) -> None:
    assert load(tmp_path) == DeviceSpec(
        name="mine",
        peak_flops={"fp32": 1e12, "bf16": 2e12},
        memory_bytes=None,
        memory_bytes_per_s=3e10,
    )


def test_file_in_the_shape_of_the_table(tmp_path: Path) -> None:
    for name in NAMES:
        device = load_device(name)
        assert load(tmp_path, **asdict(device)) == device


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"name": None}, "name is missing"),
        ({"peak_flops": None}, "peak_flops is missing"),
        ({"peak_flops": 1e12}, "peak_flops must be an object"),
        ({"peak_flops": {"float16": 1e12}}, "peak_flops: float16 is not a dtype known here"),
        ({"peak_flops": {"fp16": 0}}, "peak_flops: fp16 must be positive"),
        ({"memory_bytes_per_s": None}, "memory_bytes_per_s is missing"),
        ({"memory_bytes_per_s": "3e10"}, "memory_bytes_per_s must be a number"),
        ({"memory_bytes": 1.5}, "memory_bytes must be a positive whole number"),
        # Written in TFLOP/s, GB/s and GiB.
        ({"peak_flops": {"bf16": 312}}, "peak_flops: bf16 is in FLOP/s: 312 is less than any"),
        ({"memory_bytes_per_s": 2000}, "memory_bytes_per_s is in bytes/s: 2000 is less than any"),
        ({"memory_bytes": 80}, "memory_bytes is in bytes: 80 is less than any"),
        ({"link_bytes_per_s": 450}, "link_bytes_per_s is in bytes/s: 450 is less than any"),
        ({"host_link_bytes_per_s": 64}, "host_link_bytes_per_s is in bytes/s: 64 is less than"),
        ({"power_w": -1}, "power_w must be positive"),
        ({"kind": "guess"}, 'kind must be "datasheet" or "achievable", not "guess"'),
        ({"memory_bandwidth": 3e10}, "memory_bandwidth is not a field of a device"),
        ({"sources": {"power_w": 3}}, "sources: power_w must be a text"),
    ],
)
def test_bad_file_names_file_and_field(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as caught:
        load(tmp_path, **changes)
    assert str(caught.value).startswith(f"{tmp_path}/gpu.json: {said}")
    assert "\n" not in str(caught.value)
