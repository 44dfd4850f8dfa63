"""nvidia-smi -q, as text and as XML, in the layouts of old and new drivers."""

from __future__ import annotations

from pathlib import Path

import pytest
from telemetry_read import MIB, latest, missing, read, sentences
from telemetry_texts import OLD_REPORT, REPORT, XML

from stallscope.errors import InputError

NEW_VALUES = {
    "nvml_gpu_util": 0.98,
    "nvml_memory_util": 0.52,
    "memory_total_bytes": 46068 * MIB,
    "memory_reserved_bytes": 434 * MIB,
    "memory_used_bytes": 40000 * MIB,
    "memory_free_bytes": 5634 * MIB,
    "temperature_c": 71,
    "power_mw": 284_030,
    "power_limit_mw": 350_000,
    "sm_clock_hz": 2_505_000_000,
    "memory_clock_hz": 9_001_000_000,
    "sm_clock_max_hz": 2_520_000_000,
    "memory_clock_max_hz": 9_001_000_000,
    "pcie_tx_bytes_per_s": 174_169_000,
    "pcie_rx_bytes_per_s": 1_436_230_000,
    "clock_event_reasons": 0x4 | 0x40,
}


def test_every_counter_of_a_new_report(tmp_path: Path) -> None:
    capture = read(tmp_path, REPORT)
    assert latest(capture) == {"GPU 0 NVIDIA L40S": NEW_VALUES}
    assert missing(capture) == {}
    assert capture.subject.device is not None
    assert capture.subject.device.name == "l40s"
    assert capture.meta["telemetry"]["driver"] == "595.71.05"
    assert capture.meta["devices"] == {
        "GPU 0 NVIDIA L40S": {
            "name": "NVIDIA L40S",
            "uuid": "GPU-1a",
            "pci_bus_id": "00000000:01:00.0",
        }
    }


def test_every_counter_of_an_old_report(tmp_path: Path) -> None:
    capture = read(tmp_path, OLD_REPORT)
    assert latest(capture) == {
        "GPU 0 Tesla K80": {
            "nvml_gpu_util": 0,
            "memory_total_bytes": 11439 * MIB,
            "memory_used_bytes": 2 * MIB,
            "memory_free_bytes": 11437 * MIB,
            "power_mw": 26_310,
            "power_limit_mw": 125_000,
            "sm_clock_hz": 324_000_000,
            "clock_event_reasons": 1,
        }
    }
    assert missing(capture) == {"nvml_memory_util": 'nvidia-smi printed "N/A"'}


def test_reports_follow_upon_each_other(tmp_path: Path) -> None:
    later = REPORT.replace("11:59:58", "12:00:03").replace(": 98 %", ": 12 %")
    capture = read(tmp_path, REPORT + later)
    busy = [(s.t_ns, s.value) for s in capture.device_samples if s.name == "nvml_gpu_util"]
    assert busy == [(0, 0.98), (5_000_000_000, 0.12)]


def test_instances_have_their_own_memory(tmp_path: Path) -> None:
    mig = """    MIG Mode
        Current                                        : Enabled
    MIG Device
        Index                                          : 0
        GPU Instance ID                                : 2
        Compute Instance ID                            : 0
        Shared FB Memory Usage
            Total                                      : 40448 MiB
            Used                                       : 26 MiB
            Free                                       : 40423 MiB
    MIG Device
        Index                                          : 1
        GPU Instance ID                                : 9
        Compute Instance ID                            : 1
        FB Memory Usage
            Total                                      : 9984 MiB
            Used                                       : 9 MiB
"""
    text = REPORT.replace(
        "    MIG Mode\n        Current                                        : Disabled\n", mig
    ).replace(": 98 %", ": N/A")
    found = read(tmp_path, text)
    seen = latest(found)
    assert seen["GPU 0 NVIDIA L40S MIG 2/0"] == {
        "memory_total_bytes": 40448 * MIB,
        "memory_used_bytes": 26 * MIB,
        "memory_free_bytes": 40423 * MIB,
    }
    assert seen["GPU 0 NVIDIA L40S MIG 9/1"] == {
        "memory_total_bytes": 9984 * MIB,
        "memory_used_bytes": 9 * MIB,
    }
    whole = seen["GPU 0 NVIDIA L40S (whole GPU)"]
    assert whole["power_mw"] == 284_030
    assert "memory_used_bytes" not in whole  # the instances' would count twice
    assert len(seen) == 3
    assert missing(found) == {"nvml_gpu_util": 'nvidia-smi printed "N/A"'}
    assert found.subject.device is None


def test_a_report_that_breaks_off_keeps_what_is_whole(tmp_path: Path) -> None:
    capture = read(tmp_path, REPORT[: REPORT.index("5634 MiB") + 2])  # "Free : 56"
    seen = latest(capture)["GPU 0 NVIDIA L40S"]
    assert seen["memory_used_bytes"] == 40000 * MIB
    assert "memory_free_bytes" not in seen
    assert sentences(capture)[-1].startswith("The file breaks off")


def test_xml_says_what_the_text_says(tmp_path: Path) -> None:
    capture = read(tmp_path, XML)
    assert latest(capture) == {"GPU 0 NVIDIA L40S": NEW_VALUES}
    assert sentences(capture) == [
        "GPU 0 NVIDIA L40S slowed its clocks in 1 of 1 samples: software power cap, hardware "
        "thermal slowdown."
    ]


def test_xml_of_old_drivers_and_of_utf16(tmp_path: Path) -> None:
    text = XML.replace("gpu_power_readings", "power_readings").replace(
        "average_power_draw", "power_draw"
    )
    text = text.replace("current_power_limit", "enforced_power_limit")
    text = text.replace("clocks_event_reason", "clocks_throttle_reason")
    assert latest(read(tmp_path, text.encode("utf-16"))) == {"GPU 0 NVIDIA L40S": NEW_VALUES}


def test_documents_and_gpus_follow_upon_each_other(tmp_path: Path) -> None:
    begin, end = XML.index("  <gpu id"), XML.index("</nvidia_smi_log>")
    second = XML[begin:end].replace("98 %", "3 %").replace("GPU-1a", "GPU-2b")
    text = XML[:end] + second + XML[end:]
    capture = read(tmp_path, text + text.replace("11:59:58", "11:59:59"))
    busy = [
        (s.t_ns, s.device, s.value) for s in capture.device_samples if s.name == "nvml_gpu_util"
    ]
    assert busy == [
        (0, "GPU 0 NVIDIA L40S", 0.98),
        (0, "GPU 1 NVIDIA L40S", 0.03),
        (1_000_000_000, "GPU 0 NVIDIA L40S", 0.98),
        (1_000_000_000, "GPU 1 NVIDIA L40S", 0.03),
    ]


def test_xml_instances(tmp_path: Path) -> None:
    instance = (
        "<mig_devices><mig_device><index>0</index><gpu_instance_id>3</gpu_instance_id>"
        "<compute_instance_id>0</compute_instance_id><fb_memory_usage><total>19968 MiB</total>"
        "<used>12 MiB</used></fb_memory_usage></mig_device></mig_devices>"
    )
    seen = latest(read(tmp_path, XML.replace("<mig_devices>None</mig_devices>", instance)))
    assert seen["GPU 0 NVIDIA L40S MIG 3/0"] == {
        "memory_total_bytes": 19968 * MIB,
        "memory_used_bytes": 12 * MIB,
    }
    assert seen["GPU 0 NVIDIA L40S (whole GPU)"]["nvml_gpu_util"] == 0.98


def test_cut_xml_keeps_what_is_whole(tmp_path: Path) -> None:
    capture = read(tmp_path, XML[: XML.index("<free>")])
    seen = latest(capture)["GPU 0 NVIDIA L40S"]
    assert seen["memory_used_bytes"] == 40000 * MIB
    assert "nvml_gpu_util" not in seen
    assert sentences(capture)[-1].startswith("The file breaks off")


def test_entities_are_refused(tmp_path: Path) -> None:
    bomb = '<!DOCTYPE x [<!ENTITY a "b"><!ENTITY c "&a;&a;">]>'
    with pytest.raises(InputError, match=r"declares entities[^\n]*$"):
        read(tmp_path, XML.replace('<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v13.dtd">', bomb))
