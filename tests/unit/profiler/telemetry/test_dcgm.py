"""dcgmi dmon, pages of dcgm-exporter, and tables of DCGM's values."""

from __future__ import annotations

from pathlib import Path

import pytest
from telemetry_read import MIB, latest, missing, read, sentences, values
from telemetry_texts import DCGM_DMON, PAGE


def test_every_counter_of_dcgmi_dmon(tmp_path: Path) -> None:
    capture = read(tmp_path, DCGM_DMON)
    assert latest(capture) == {
        "GPU 0": {
            "dcgm_gr_engine_active": 0.912,
            "dcgm_sm_active": 0.884,
            "dcgm_sm_occupancy": 0.31,
            "dcgm_tensor_active": 0.21,
            "dcgm_dram_active": 0.64,
            "dcgm_fp32_active": 0.05,
            "dcgm_fp16_active": 0.3,
            "dcgm_pipe_active": 0.3,  # the busiest of the pipes
            "power_mw": 241_300,
            "memory_used_bytes": 18342 * MIB,
            "temperature_c": 61,
            "nvml_gpu_util": 0.97,
        }
    }
    assert [(s.kind, s.clock) for s in capture.sources] == [("DCGM", "none")]


@pytest.mark.parametrize("value", ["N/A", "2147483632", "9223372036854775792"])
def test_blanks_of_dcgm_are_no_numbers(tmp_path: Path, value: str) -> None:
    text = f"#Entity   GPUTL   FBUSD\nID\nGPU 0     {value}   100\n"
    capture = read(tmp_path, text)
    assert latest(capture) == {"GPU 0": {"memory_used_bytes": 100 * MIB}}
    assert missing(capture) == {"nvml_gpu_util": f'DCGM printed "{value}"'}


def test_instances_stand_for_the_gpu_that_they_share(tmp_path: Path) -> None:
    text = (
        "# Entity  GRACT  TENSO\n      Id\n    GPU 0  0.457  0.442\n  GPU-I 0  0.534  0.516\n"
        "  GPU-I 1  0.533  0.515\n"
    )
    assert latest(read(tmp_path, text)) == {
        "GPU 0 MIG GPU-I 0": {
            "dcgm_gr_engine_active": 0.534,
            "dcgm_tensor_active": 0.516,
            "dcgm_pipe_active": 0.516,
        },
        "GPU 0 MIG GPU-I 1": {
            "dcgm_gr_engine_active": 0.533,
            "dcgm_tensor_active": 0.515,
            "dcgm_pipe_active": 0.515,
        },
    }


def test_names_with_blanks_are_told_by_their_place(tmp_path: Path) -> None:
    text = (
        "#Entity   DVNAM                POWER   SMACT\n"
        "ID                             W\n"
        "GPU 0     NVIDIA L4            70.5    0.250\n"
    )
    capture = read(tmp_path, text)
    assert latest(capture) == {"GPU 0 NVIDIA L4": {"power_mw": 70_500, "dcgm_sm_active": 0.25}}
    assert capture.subject.device is not None
    assert capture.subject.device.name == "l4"


def test_every_counter_of_a_page(tmp_path: Path) -> None:
    capture = read(tmp_path, PAGE)
    assert latest(capture) == {
        "GPU 0 NVIDIA L4": {
            "sm_clock_hz": 2_040_000_000,
            "memory_clock_hz": 6_251_000_000,
            "temperature_c": 61,
            "power_mw": 70_365,
            "energy_mj": 4_742_776,
            "nvml_gpu_util": 0.99,
            "nvml_memory_util": 0.4,
            "memory_free_bytes": 2563 * MIB,
            "memory_used_bytes": 20000 * MIB,
            "memory_reserved_bytes": 470 * MIB,
            "memory_total_bytes": 23033 * MIB,  # 2563 + 20000 + 470
            "clock_event_reasons": 36,  # 0x4 | 0x20
            "dcgm_gr_engine_active": 0.99,
            "dcgm_sm_active": 0.95,
            "dcgm_sm_occupancy": 0.3,
            "dcgm_tensor_active": 0.11,
            "dcgm_fp64_active": 0,
            "dcgm_pipe_active": 0.11,
            "dcgm_dram_active": 0.72,
            "pcie_tx_bytes_per_s": 112_603,
            "pcie_rx_bytes_per_s": 17_544,
        }
    }
    assert capture.subject.device is not None
    assert capture.subject.device.memory_bytes == 23033 * MIB
    assert sentences(capture) == [
        "GPU 0 NVIDIA L4 slowed its clocks in 1 of 1 samples: software power cap, software thermal "
        "slowdown."
    ]


def test_nan_and_blanks_on_a_page_are_no_numbers(tmp_path: Path) -> None:
    text = PAGE.replace("} 70.365000", "} NaN").replace("} 0.950000", "} 140737488355328.000000")
    found = missing(read(tmp_path, text))
    assert found == {
        "power_mw": 'DCGM printed "NaN"',
        "dcgm_sm_active": 'DCGM printed "140737488355328.000000"',
    }


def test_instances_on_a_page(tmp_path: Path) -> None:
    mine = 'gpu="0",UUID="GPU-1",GPU_I_PROFILE="1g.5gb",GPU_I_ID="13",Hostname="a"'
    line = f"DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{{{mine}}} 0.93\n"
    seen = latest(read(tmp_path, PAGE + line))
    assert seen["GPU 0 NVIDIA L4 MIG 13 1g.5gb"] == {
        "dcgm_tensor_active": 0.93,
        "dcgm_pipe_active": 0.93,
    }
    whole = seen["GPU 0 NVIDIA L4 (whole GPU)"]
    assert whole["power_mw"] == 70_365
    assert not {"dcgm_tensor_active", "dcgm_pipe_active"} & set(whole)


def test_pages_of_a_series_have_their_times(tmp_path: Path) -> None:
    line = 'DCGM_FI_DEV_GPU_UTIL{gpu="0",Hostname="a"}'
    text = f"# scrape_unix_ms 1700000000000\n{line} 5\n# scrape_unix_ms 1700000001500\n{line} 7\n"
    capture = read(tmp_path, text)
    assert values(capture) == {
        "GPU 0": [
            (0, "nvml_gpu_util", 0.05, "fraction"),
            (1_500_000_000, "nvml_gpu_util", 0.07, "fraction"),
        ]
    }
    assert capture.meta["clock"] == {"unix_ns": 1_700_000_000_000_000_000, "t_ns": 0}


def test_hosts_are_told_apart(tmp_path: Path) -> None:
    text = "".join(
        f'DCGM_FI_DEV_GPU_UTIL{{gpu="0",Hostname="{host}"}} {value}\n'
        for host, value in (("a", 5), ("b", 7))
    )
    assert latest(read(tmp_path, text)) == {
        "a: GPU 0": {"nvml_gpu_util": 0.05},
        "b: GPU 0": {"nvml_gpu_util": 0.07},
    }


def test_a_page_cut_within_a_number_leaves_it_out(tmp_path: Path) -> None:
    text = PAGE[: PAGE.index("0.990000") + 3]  # 0.9
    capture = read(tmp_path, text)
    assert "dcgm_gr_engine_active" not in latest(capture)["GPU 0 NVIDIA L4"]
    assert sentences(capture)[-1].startswith("The file breaks off")


def test_table_of_values(tmp_path: Path) -> None:
    text = (
        "GPUId,TimeStampUs,Field,Values\n"
        "0,1718783836956328,power_usage_instant,71.20\n"
        "0,1718783837956328,current_clock_throttle_reasons,1\n"
        "1,1718783836956329,gpu_utilization,3\n"
        "1,1718783836956329,throttle_reason_idle,1\n"
    )
    assert values(read(tmp_path, text)) == {
        "GPU 0": [
            (0, "power_mw", 71_200, "mW"),
            (1_000_000_000, "clock_event_reasons", 1, "bitmask"),
        ],
        "GPU 1": [(1_000, "nvml_gpu_util", 0.03, "fraction")],
    }
