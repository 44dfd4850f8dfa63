"""What nvidia-smi's table could not see is said, and told from what is not there."""

from __future__ import annotations

from pathlib import Path

import pytest
from telemetry_read import read, sentences
from telemetry_texts import OLD_REPORT, RULE, TABLE, XML

HEAD = (
    "| Processes:                                                       |\n"
    "|  GPU   GI   CI        PID   Type   Process name       GPU Memory |\n"
    "|==================================================================|\n"
)
ROW = "|    0   N/A  N/A      2165      C   python3                500MiB |\n"
OLD_ROW = "|    0     24539      C   python                            500MiB |\n"
NOBODY = "|  No running processes found                                      |\n"
LOST = "Failed to initialize NVML: Unknown Error\n"
HANDLE = "Unable to determine the device handle for GPU0000:05:00.0: Unknown Error\n"


@pytest.mark.parametrize(
    ("rows", "is_said"),
    [("", True), (ROW, False), (OLD_ROW, False), (NOBODY, False)],
)
def test_an_empty_table_of_processes(tmp_path: Path, rows: str, is_said: bool) -> None:
    said = sentences(read(tmp_path, f"{TABLE}{HEAD}{rows}{RULE}"))
    assert any("The table of processes is empty" in s for s in said) is is_said


def test_a_table_that_breaks_off_says_nothing_of_processes(tmp_path: Path) -> None:
    assert not any("is empty" in s for s in sentences(read(tmp_path, TABLE + HEAD)))


@pytest.mark.parametrize("line", [LOST, HANDLE])
def test_a_driver_that_was_lost(tmp_path: Path, line: str) -> None:
    said = sentences(read(tmp_path, TABLE + line))
    assert any('could not reach the driver ("Unknown Error")' in s for s in said)
    assert not any("could not reach" in s for s in sentences(read(tmp_path, TABLE)))


QUERY = (
    "name, driver_model.current, utilization.gpu [%], memory.used [MiB]\n"
    "NVIDIA GeForce RTX 3090, {model}, 99 %, 20000 MiB\n"
)


@pytest.mark.parametrize(
    ("text", "models"),
    [
        (QUERY.format(model="WDDM"), ["WDDM"]),
        (QUERY.format(model="[N/A]"), []),
        (TABLE, []),
        (TABLE.replace("A10                     On ", "A10                   WDDM "), ["WDDM"]),
        (
            OLD_REPORT.replace(
                "    GPU UUID", "    Driver Model\n        Current : TCC\n    GPU UUID"
            ),
            ["TCC"],
        ),
        (
            XML.replace(
                "<uuid>", "<driver_model><current_dm>WDDM</current_dm></driver_model><uuid>"
            ),
            ["WDDM"],
        ),
    ],
)
def test_the_driver_s_model_under_windows(tmp_path: Path, text: str, models: list[str]) -> None:
    assert read(tmp_path, text).meta["telemetry"]["driver_models"] == models
