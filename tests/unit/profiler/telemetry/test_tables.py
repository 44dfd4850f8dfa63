"""The default table, dmon and pmon: every counter, and what stands in place of one."""

from __future__ import annotations

from pathlib import Path

import pytest
from telemetry_read import MIB, latest, missing, read, sentences, values
from telemetry_texts import DMON, PMON, TABLE


def test_table_of_two_gpus(tmp_path: Path) -> None:
    capture = read(tmp_path, TABLE)
    assert latest(capture) == {
        "GPU 0 NVIDIA A10": {
            "nvml_gpu_util": 0.97,
            "memory_used_bytes": 20059 * MIB,
            "memory_total_bytes": 23028 * MIB,
            "power_mw": 98_000,
            "power_limit_mw": 150_000,
            "temperature_c": 42,
        },
        "GPU 1": {"memory_used_bytes": 797 * MIB, "memory_total_bytes": 16376 * MIB},
    }
    assert missing(capture) == {}  # GPU 0 has them all
    assert capture.subject.device is None  # two kinds


def test_tables_below_each_other_have_their_times(tmp_path: Path) -> None:
    capture = read(tmp_path, TABLE + TABLE.replace("09:00:26", "09:01:26").replace("97%", "5%"))
    busy = [(s.t_ns, s.value) for s in capture.device_samples if s.name == "nvml_gpu_util"]
    assert busy == [(0, 0.97), (60_000_000_000, 0.05)]


def test_table_of_a_windows_driver(tmp_path: Path) -> None:
    text = (
        "| NVIDIA-SMI 610.62                 KMD Version: 610.62        CUDA UMD Version: 13.3 |\n"
        "|   0  NVIDIA L4                    WDDM  |   00000000:0C:00.0  On |            N/A |\n"
        "| 38%   39C    P8             37W /   72W |     797MiB /  23034MiB |      0%   Default |\n"
    )
    capture = read(tmp_path, text)
    assert latest(capture)["GPU 0 NVIDIA L4"]["power_mw"] == 37_000
    assert capture.meta["telemetry"]["driver"] == "610.62"
    assert capture.subject.device is not None


def test_table_of_an_old_driver(tmp_path: Path) -> None:
    text = (
        "| NVIDIA-SMI 470.57.02    Driver Version: 470.57.02    CUDA Version: 11.4     |\n"
        "|   0  Tesla T4            Off  | 00000000:00:04.0 Off |                    0 |\n"
        "| N/A   34C    P8     9W /  70W |      3MiB / 15109MiB |      0%      Default |\n"
    )
    assert latest(read(tmp_path, text)) == {
        "GPU 0 Tesla T4": {
            "nvml_gpu_util": 0,
            "memory_used_bytes": 3 * MIB,
            "memory_total_bytes": 15109 * MIB,
            "power_mw": 9_000,
            "power_limit_mw": 70_000,
            "temperature_c": 34,
        }
    }


def test_mig_rows_of_the_table(tmp_path: Path) -> None:
    text = TABLE.replace("     97% ", "     N/A ") + (
        "| MIG devices:                                                                       |\n"
        "| GPU  GI  CI  MIG |              Shared Memory-Usage |        Vol|        Shared    |\n"
        "|  0    2   0   0  |              26MiB / 11776MiB    | 60      0 |  3   0    3    0 |\n"
        "|                  |               0MiB / 24739MiB    |           |                  |\n"
        "|  0   10   0   3  |               9MiB /  5888MiB    | 16      0 |  1   0    1    0 |\n"
    )
    seen = latest(read(tmp_path, text))
    assert seen["GPU 0 NVIDIA A10 MIG 2/0"] == {
        "memory_used_bytes": 26 * MIB,
        "memory_total_bytes": 11776 * MIB,
    }
    assert seen["GPU 0 NVIDIA A10 MIG 10/0"]["memory_total_bytes"] == 5888 * MIB
    assert "memory_used_bytes" not in seen["GPU 0 NVIDIA A10 (whole GPU)"]


def test_every_counter_of_dmon(tmp_path: Path) -> None:
    capture = read(tmp_path, DMON)
    second = {name: value for t, name, value, _ in values(capture)["GPU 0"] if t == 2_000_000_000}
    first = {name: value for t, name, value, _ in values(capture)["GPU 0"] if t == 0}
    assert first == {
        "power_mw": 300_000,
        "temperature_c": 61,
        "nvml_gpu_util": 0.97,
        "nvml_memory_util": 0.44,
        "memory_clock_hz": 9_501_000_000,
        "sm_clock_hz": 1_980_000_000,
        "memory_used_bytes": 70_000 * MIB,
        "pcie_rx_bytes_per_s": 15_000_000,
        "pcie_tx_bytes_per_s": 120_000_000,
    }
    assert "nvml_gpu_util" not in second
    assert second["memory_used_bytes"] == 70_001 * MIB


def test_dmon_of_an_old_driver_goes_by_its_header(tmp_path: Path) -> None:
    text = (
        "# gpu   pwr  temp    sm   mem   enc   dec  mclk  pclk\n"
        "# Idx     W     C     %     %     %     %   MHz   MHz\n"
        "    0    43    48     7     1     0     0  3505   936\n"
        "    1     -    50     -     -     0     0  3505   936\n"
    )
    capture = read(tmp_path, text)
    assert latest(capture) == {
        "GPU 0": {
            "power_mw": 43_000,
            "temperature_c": 48,
            "nvml_gpu_util": 0.07,
            "nvml_memory_util": 0.01,
            "memory_clock_hz": 3_505_000_000,
            "sm_clock_hz": 936_000_000,
        },
        "GPU 1": {
            "temperature_c": 50,
            "memory_clock_hz": 3_505_000_000,
            "sm_clock_hz": 936_000_000,
        },
    }
    assert sentences(capture) == [
        "The samples have no time: only their means and extremes say something."
    ]


def test_dmon_as_csv(tmp_path: Path) -> None:
    text = "#gpu, pwr, gtemp, sm\n#Idx, W, C, %\n0, 43, 48, 7\n"
    assert latest(read(tmp_path, text)) == {
        "GPU 0": {"power_mw": 43_000, "temperature_c": 48, "nvml_gpu_util": 0.07}
    }


def test_dmon_with_times_alone_goes_over_midnight(tmp_path: Path) -> None:
    text = "#Time        gpu     sm\n#HH:MM:SS    Idx      %\n 23:59:59      0      5\n"
    capture = read(tmp_path, text + " 00:00:01      0      6\n")
    assert values(capture)["GPU 0"] == [
        (0, "nvml_gpu_util", 0.05, "fraction"),
        (2_000_000_000, "nvml_gpu_util", 0.06, "fraction"),
    ]


def test_dmon_that_breaks_off(tmp_path: Path) -> None:
    head = "# gpu    pwr     sm\n# Idx      W      %\n    0     43     70\n"
    capture = read(tmp_path, head + "    0     43      7")
    assert [s.value for s in capture.device_samples if s.name == "nvml_gpu_util"] == [0.7]
    assert sentences(capture)[-1].startswith("The file breaks off")


def test_pmon_names_processes_and_not_the_device(tmp_path: Path) -> None:
    rows = "    0       5021     C     40     30      -      -   9000    python3 -m vllm\n"
    capture = read(tmp_path, PMON + rows)
    assert latest(capture) == {
        "GPU 0 pid 5021 python3 -m vllm": {
            "process_sm_util": 0.4,
            "process_memory_bytes": 9000 * MIB,
        }
    }


@pytest.mark.parametrize(
    "row",
    [
        "    0          -     -      -      -      -      -      -    -\n",
        "    0       2165   C+G      -      -      -      0      -    kwin\n",
    ],
)
def test_pmon_without_work_loads_and_says_so(tmp_path: Path, row: str) -> None:
    capture = read(tmp_path, PMON + row)
    assert capture.device_samples == ()
    assert sentences(capture) == ["nvidia-smi pmon saw no process at work on a GPU while it ran."]
