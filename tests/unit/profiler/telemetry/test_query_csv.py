"""nvidia-smi --query-gpu as CSV: every counter of every variant, in our units."""

from __future__ import annotations

from pathlib import Path

import pytest
from telemetry_read import MIB, latest, missing, read, sentences, values
from telemetry_texts import QUERY, TRANSFER

from stallscope.errors import InputError

NAME = "GPU 3 NVIDIA H200"


def test_every_counter_of_a_full_row(tmp_path: Path) -> None:
    capture = read(tmp_path, QUERY)
    assert latest(capture) == {
        NAME: {
            "nvml_gpu_util": 0.87,
            "nvml_memory_util": 0.41,
            "memory_total_bytes": 143771 * MIB,
            "memory_reserved_bytes": 600 * MIB,
            "memory_used_bytes": 120000 * MIB,
            "memory_free_bytes": 23171 * MIB,
            "temperature_c": 61,
            "power_mw": 512_500,
            "power_limit_mw": 650_000,  # the one in force
            "sm_clock_hz": 1_755_000_000,
            "memory_clock_hz": 3_201_000_000,
            "sm_clock_max_hz": 1_980_000_000,
            "memory_clock_max_hz": 3_201_000_000,
            "clock_event_reasons": 4,
        }
    }
    units = {s.name: s.unit for s in capture.device_samples}
    assert units["nvml_gpu_util"] == "fraction"
    assert units["power_mw"] == "mW"
    assert units["sm_clock_hz"] == "Hz"
    assert units["memory_used_bytes"] == "bytes"
    assert units["temperature_c"] == "°C"
    assert missing(capture) == {}
    assert capture.subject.device is not None
    assert capture.subject.device.name == "h200-sxm"
    assert capture.subject.device.memory_bytes == 143771 * MIB
    assert capture.meta["devices"] == {
        NAME: {"name": "NVIDIA H200", "uuid": "GPU-0a", "pci_bus_id": "00000000:5D:00.0"}
    }
    assert capture.meta["telemetry"]["driver"] == "580.95.05"
    assert [(s.kind, s.clock) for s in capture.sources] == [("nvidia-smi", "local time")]
    throttle = [(e.t_ns, e.data) for e in capture.events if e.kind == "throttle"]
    assert throttle == [(0, {"device": NAME, "reasons": ["software power cap"]})]
    assert sentences(capture) == [
        f"{NAME} slowed its clocks in 1 of 1 samples: software power cap."
    ]


def test_rows_go_on_over_midnight_and_headers_come_again(tmp_path: Path) -> None:
    header = "timestamp, index, utilization.gpu [%]\n"
    text = (
        header + "2026/02/28 23:59:59.500, 0, 10 %\n2026/02/28 23:59:59.504, 1, 20 %\n"
        "\n" + header + "2026/03/01 00:00:01.000, 0, 30 %\n2026/03/01 00:00:01.004, 1, 40 %\n"
    )
    assert values(read(tmp_path, text)) == {
        "GPU 0": [
            (0, "nvml_gpu_util", 0.1, "fraction"),
            (1_500_000_000, "nvml_gpu_util", 0.3, "fraction"),
        ],
        "GPU 1": [
            (4_000_000, "nvml_gpu_util", 0.2, "fraction"),
            (1_504_000_000, "nvml_gpu_util", 0.4, "fraction"),
        ],
    }


SAME = {
    "units in the cells": "index, power.draw [W], memory.used [MiB]\n0, 71.25 W, 4 MiB\n",
    "nounits": "index, power.draw [W], memory.used [MiB]\n0, 71.25, 4\n",
    "no units at all": "index, power.draw, memory.used\n0, 71.25, 4\n",
    "decimal commas": "index, power.draw [W], memory.used [MiB]\n0, 71,25 W, 4 MiB\n",
    "semicolons": "index;power.draw [W];memory.used [MiB]\n0;71,25 W;4 MiB\n",
    "tabs": "index\tpower.draw [W]\tmemory.used [MiB]\n0\t71.25 W\t4 MiB\n",
    "without blanks": "index,power.draw [W],memory.used [MiB]\n0,71.25 W,4 MiB\n",
    "quoted": '"index","power.draw [W]","memory.used [MiB]"\n"0","71.25 W","4 MiB"\n',
    "MB of old drivers": "index, power.draw [W], memory.used [MB]\n0, 71.25 W, 4 MB\n",
    "CR LF": "index, power.draw [W], memory.used [MiB]\r\n0, 71.25 W, 4 MiB\r\n",
    "after a prompt": "$ nvidia-smi\nindex, power.draw [W], memory.used [MiB]\n0, 71.25 W, 4 MiB\n",
    "columns of one's own": "index, power.draw [W], my note 1, memory.used [MiB]\n"
    "0, 71.25 W, x, 4 MiB\n",
    "below its command": "$ nvidia-smi --query-gpu=index,power.draw,memory.used --format=csv\n"
    "index, power.draw [W], memory.used [MiB]\n0, 71.25 W, 4 MiB\n",
    "instant power": "index, power.draw.instant [W], memory.used [MiB]\n0, 71.25 W, 4 MiB\n",
    "GiB": "index, power.draw [W], memory.used\n0, 0.07125 kW, 4096 KiB\n",
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME.keys())
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_the_same_row_however_it_is_written(tmp_path: Path, text: str, encoding: str) -> None:
    capture = read(tmp_path, text.encode(encoding))
    assert latest(capture) == {"GPU 0": {"power_mw": 71_250, "memory_used_bytes": 4 * MIB}}


@pytest.mark.parametrize(
    "word",
    ["[N/A]", "[Not Supported]", "N/A", "-", "ERR!", "[Unknown Error]", "[GPU requires reset]"],
)
def test_a_word_in_place_of_a_number_is_a_reason_and_never_zero(tmp_path: Path, word: str) -> None:
    text = f"index, utilization.gpu [%], power.draw [W]\n0, {word}, 80.00 W\n"
    capture = read(tmp_path, text)
    assert latest(capture) == {"GPU 0": {"power_mw": 80_000}}
    assert missing(capture) == {"nvml_gpu_util": f'nvidia-smi printed "{word}"'}


def test_what_one_row_lacks_and_another_has_is_observable(tmp_path: Path) -> None:
    text = "index, power.draw [W]\n0, [N/A]\n0, 80.00 W\n"
    capture = read(tmp_path, text)
    assert latest(capture) == {"GPU 0": {"power_mw": 80_000}}
    assert missing(capture) == {}


def test_flags_make_the_mask(tmp_path: Path) -> None:
    names = "sw_power_cap, clocks_throttle_reasons.hw_thermal_slowdown"
    header = f"index, utilization.gpu [%], clocks_throttle_reasons.{names}\n"
    capture = read(
        tmp_path,
        header + "0, 9 %, Not Active, Not Active\n0, 9 %, Active, Active\n0, 9 %, Active, [N/A]\n",
    )
    masks = [s.value for s in capture.device_samples if s.name == "clock_event_reasons"]
    assert masks == [0, 0x4 | 0x40, 0x4]
    assert "GPU 0 slowed its clocks in 2 of 3 samples: software power cap, hardware thermal " + (
        "slowdown."
    ) in sentences(capture)


def test_total_is_made_of_its_parts(tmp_path: Path) -> None:
    text = "index, memory.used [MiB], memory.free [MiB], memory.reserved [MiB]\n0, 10, 20, 5\n"
    assert latest(read(tmp_path, text))["GPU 0"]["memory_total_bytes"] == 35 * MIB


def test_rows_of_nobody_are_said(tmp_path: Path) -> None:
    capture = read(tmp_path, "timestamp, utilization.gpu [%]\n2026/01/03 15:36:53.507, 1 %\n")
    assert latest(capture) == {"GPU": {"nvml_gpu_util": 0.01}}
    assert len(sentences(capture)) == 1
    assert "do not say which GPU" in sentences(capture)[0]


def test_a_partitioned_gpu_is_not_the_one_of_the_table(tmp_path: Path) -> None:
    text = "index, name, mig.mode.current, memory.used [MiB]\n0, NVIDIA H200, Enabled, 7 MiB\n"
    assert read(tmp_path, text).subject.device is None
    assert read(tmp_path, text.replace("Enabled", "Disabled")).subject.device is not None


def test_processes_are_not_the_device(tmp_path: Path) -> None:
    text = (
        "timestamp, gpu_name, gpu_uuid, pid, process_name, used_gpu_memory [MiB]\n"
        "2026/06/26 11:59:58.909, NVIDIA L4, GPU-1, 41, python, 1500 MiB\n"
        "2026/06/26 11:59:58.909, NVIDIA L4, GPU-1, 42, a, b, [N/A]\n"
        "2026/06/26 11:59:58.909, NVIDIA L4, GPU-1, 43, ./x, [N/A]\n"
    )
    capture = read(tmp_path, text)
    assert latest(capture) == {
        "GPU GPU-1 NVIDIA L4 pid 41 python": {"process_memory_bytes": 1500 * MIB}
    }
    assert sentences(capture) == [
        "1 line has more or fewer cells than the header and was left out."
    ]


def test_a_cut_last_line_is_left_out_and_said(tmp_path: Path) -> None:
    capture = read(tmp_path, "index, power.draw [W], pstate\n0, 80.00 W, P0\n0, 8")
    assert [s.value for s in capture.device_samples] == [80_000]
    assert sentences(capture)[-1].startswith("The file breaks off")


def test_a_last_cell_without_its_unit_is_cut_not_a_smaller_number(tmp_path: Path) -> None:
    capture = read(tmp_path, "index, power.draw [W]\n0, 80.00 W\n0, 8")
    assert [s.value for s in capture.device_samples] == [80_000]
    assert sentences(capture)[-1].startswith("The file breaks off")


def test_a_clock_that_jumps_back_is_said(tmp_path: Path) -> None:
    rows = "2026/01/03 10:00:05.000, 0, 1 %\n2026/01/03 10:00:01.000, 0, 2 %\n"
    capture = read(tmp_path, "timestamp, index, utilization.gpu [%]\n" + rows)
    assert [(s.t_ns, s.value) for s in capture.device_samples] == [(0, 0.02), (4_000_000_000, 0.01)]
    assert "The clock of the file jumps back" in sentences(capture)[0]


@pytest.mark.parametrize("value", ["4294967295 %", "-5 %", "1e999 %", "250 %"])
def test_what_cannot_be_is_not_believed(tmp_path: Path, value: str) -> None:
    capture = read(tmp_path, f"index, utilization.gpu [%], power.draw [W]\n0, {value}, 80 W\n")
    assert latest(capture) == {"GPU 0": {"power_mw": 80_000}}
    assert missing(capture) == {"nvml_gpu_util": f'nvidia-smi printed "{value}"'}


def test_rows_without_a_header_are_told_by_their_units(tmp_path: Path) -> None:
    text = (
        "2024/01/16 14:44:16.981, NVIDIA L4, 24, 95 %, 30 %, 23034 MiB, 20100 MiB, 70.10 W\n"
        "2024/01/16 14:44:17.981, NVIDIA L4, 24, 90 %, 20 %, 23034 MiB, 20200 MiB, 71.10 W\n"
    )
    capture = read(tmp_path, text)
    assert latest(capture) == {
        "NVIDIA L4": {
            "nvml_gpu_util": 0.9,
            "nvml_memory_util": 0.2,
            "memory_total_bytes": 23034 * MIB,
            "memory_used_bytes": 20200 * MIB,
            "power_mw": 71_100,
        }
    }
    assert sentences(capture)[0] == (
        'The rows have no header; by their units they were taken for "timestamp, name, x, '
        'utilization.gpu, utilization.memory, memory.total, memory.used, power.draw".'
    )


def test_bare_numbers_without_a_header_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="put the queries, as in"):
        read(tmp_path, "2024/01/16 14:44:16.981, 24, 95, 30\n2024/01/16 14:44:17.981, 24, 90, 20\n")


def test_a_header_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="has no row"):
        read(tmp_path, QUERY.splitlines(keepends=True)[0])


def test_a_table_of_pcie_traffic(tmp_path: Path) -> None:
    capture = read(tmp_path, TRANSFER + "late,1.0,0,3,4,5\n" + "1770189993.250,2.000,0,3.0")
    assert values(capture) == {
        "GPU 0": [
            (0, "pcie_rx_bytes_per_s", 0.5e6, "B/s"),
            (0, "pcie_tx_bytes_per_s", 2e6, "B/s"),
            (1_000_000_000, "pcie_rx_bytes_per_s", 96e6, "B/s"),
            (1_000_000_000, "pcie_tx_bytes_per_s", 3e6, "B/s"),
        ],
        "GPU 1": [(0, "pcie_tx_bytes_per_s", 5e6, "B/s")],
    }
    assert [s.clock for s in capture.sources] == ["unix time"]
    said = " ".join(sentences(capture))
    assert "1 line has more or fewer cells" in said
    assert "breaks off" in said
