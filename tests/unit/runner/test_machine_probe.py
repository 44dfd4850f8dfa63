"""Products by shape class against plain products timed here, and the file that keeps them."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.profiler.device_products import device_text
from stallscope.profiler.devices import load_device, load_device_file
from stallscope.profiler.spec import Calibration, DeviceSpec, MachineReading, ProductTime
from stallscope.runner.probe_products import ROWS, probe_launch, probe_products, weight_amounts

DEVICE = DeviceSpec(
    "mine",
    {"fp32": 1e12},
    1 << 30,
    1e9,
    "achievable",
    is_cpu=True,
    sources={"peak_flops": "measured"},
    products=(
        ProductTime("fp32", 64, 128, 4, 1.5e-6),
        ProductTime("bf16", 64, 128, 1, 2e-6, 4096),
    ),
    launch_s=3e-6,
)


def test_products_of_each_row_count_lie_within_the_clock_and_arithmetic() -> None:
    started = time.perf_counter()
    found = probe_products("fp32", "cpu", shapes=((256, 512),))
    elapsed_s = time.perf_counter() - started
    assert [(p.outputs, p.inputs, p.dtype) for p in found] == [(256, 512, "fp32")] * len(found)
    assert [p.rows for p in found] == list(ROWS)[: len(found)]
    # Each is the median of three passes or more, so that two of each fit into the whole.
    assert 2 * sum(p.time_s for p in found) < elapsed_s
    # No CPU multiplies at 100 TFLOP/s.
    assert all(p.time_s > 2 * p.rows * 256 * 512 / 1e14 for p in found)


def test_more_weights_are_passed_with_few_rows_only() -> None:
    mib = 1 << 20
    found = probe_products("fp32", "cpu", shapes=((512, 512),), amounts=(2 * mib, 4 * mib))
    assert [(p.weight_bytes, p.rows) for p in found if p.rows <= 32] == [
        *((2 * mib, rows) for rows in (1, 2, 4, 8, 16, 32)),
        *((4 * mib, rows) for rows in (1, 2, 4, 8, 16)),
    ]


@pytest.mark.parametrize(
    ("cache_mib", "free_mib", "expected"),
    [
        (None, 64_000, (96, 256)),
        (32, 64_000, (96, 256)),
        (260, 64_000, (96, 256, 520)),
        (4000, 64_000, (96, 256, 1024)),  # no cache is worth a GiB of somebody's memory
        (260, 520 * 8, (96, 256, 520)),
        (260, 520 * 8 - 1, (96, 256)),
        (260, 1000, (96,)),
    ],
)
def test_amounts_of_weights(
    cache_mib: int | None, free_mib: int, expected: tuple[int, ...]
) -> None:
    cache = None if cache_mib is None else cache_mib << 20
    assert [a >> 20 for a in weight_amounts(cache, free_mib << 20)] == list(expected)


def test_a_launch_takes_microseconds() -> None:
    assert 1e-7 < probe_launch("cpu") < 1e-3


def test_a_device_file_gives_the_same_device_back(tmp_path: Path) -> None:
    fitted = Calibration("2026-01-02", "builtin", 3, 6, 0.08, 1.1, 0.0, 2.0, 3.0)
    host = Calibration("2026-01-02", "vllm", 1, 4, 0.0, step_s=1e-3, request_s=0.0, sizes=4)
    fitted = replace(fitted, runs=("0123456789ab", "ba9876543210"))
    devices = [replace(DEVICE, calibration=fitted), replace(DEVICE, calibration=host)]
    for device in (DEVICE, *devices, load_device("h100-sxm"), load_device("gb10")):
        file = tmp_path / "device.json"
        file.write_text(device_text(device))
        assert load_device_file(file) == device
        assert "null" not in file.read_text()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"products": {}}, "products must be a list"),
        ({"products": [1]}, "products[0] must be an object with dtype, inputs, outputs"),
        ({"products": [{"dtype": "fp12"}]}, "products[0]: dtype is not one of fp32"),
        ({"products": [{"dtype": "fp32", "inputs": 1, "outputs": 0}]}, "outputs must be a pos"),
        ({"calibration": {"captures": 1, "steps": 2}}, "calibration: error is missing"),
        ({"calibration": {"warmth": 1}}, "calibration: warmth is no part of one"),
        ({"calibration": {"form": 2}}, "form is 2, of another version of stallscope"),
        ({"calibration": {"captures": 1, "steps": 2, "error": 0.1, "runs": "a"}}, "runs must be"),
        ({"launch_s": -1}, "launch_s must be positive"),
    ],
)
def test_a_wrong_device_file_is_refused(
    change: dict[str, object], complaint: str, tmp_path: Path
) -> None:
    file = tmp_path / "device.json"
    file.write_text(json.dumps({**json.loads(device_text(DEVICE)), **change}))
    with pytest.raises(InputError) as error:
        load_device_file(file)
    assert complaint in str(error.value)
    assert str(file) in str(error.value)


@pytest.mark.parametrize(
    ("cores", "change", "is_disturbed"),
    [
        (0.10, 0.15, False),
        (0.11, 0.0, True),
        (None, 0.0, False),  # not known is not disturbed; the report says that it is not known
        (0.0, -0.16, True),
    ],
)
def test_what_counts_as_disturbed(cores: float | None, change: float, is_disturbed: bool) -> None:
    assert MachineReading(DEVICE, 1.0, cores, change).is_disturbed == is_disturbed
