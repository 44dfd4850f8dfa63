"""The GPU that what stands before a log names: an environment, `nvidia-smi -L`, llama.cpp."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import periodic, read

from stallscope.profiler.reading import read_input
from stallscope.profiler.server_log.devices import named_in

LOG = periodic("02-03 10:00:10", 4, 2, 25.0) + periodic("02-03 10:00:20", 5, 1, 50.0)
SMI = """\
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: 12.2     |
|=========================================+======================+======================|
|   0  NVIDIA L40S                    On  | 00000000:00:09.0 Off |                    0 |
| N/A   41C    P0             280W / 400W |  40000MiB / 46068MiB |     97%      Default |
+-----------------------------------------+----------------------+----------------------+
"""


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("GPU 0: NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB"),
        ("GPU 3: NVIDIA L4 (UUID: GPU-11-22)", "NVIDIA L4"),
        ("  Device 0: NVIDIA L4, compute capability 8.9, VMM: yes", "NVIDIA L4"),
        ("GPU 0: AMD Instinct MI300X", "AMD Instinct MI300X"),
        ("I have GPU 0: NVIDIA L4 and more", None),
        ("GPU 0: NVIDIA L4 | 97 %", None),
        ("GPU 0: something else", None),
    ],
)
def test_lines_that_name_a_gpu(line: str, name: str | None) -> None:
    assert named_in(f"{line}\n") == name


def device(folder: Path, *lines: str) -> str | None:
    found = read(folder, "".join(f"{line}\n" for line in lines) + LOG).subject.device
    return None if found is None else found.name


def test_gpus_of_one_model_are_the_device(tmp_path: Path) -> None:
    l4, a100 = "NVIDIA L4", "NVIDIA A100-SXM4-80GB"
    assert device(tmp_path, f"GPU 0: {l4}", f"GPU 1: {l4}") == "l4"
    assert device(tmp_path, f"GPU 0: {l4}", f"GPU 1: {a100}") is None
    assert device(tmp_path, "GPU 0: NVIDIA Nothing Known") is None
    assert device(tmp_path) is None
    assert read(tmp_path, f"GPU 0: {l4}\nGPU 1: {l4}\n{LOG}").subject.num_devices == 1  # not told


def test_a_paste_keeps_it_beside_a_table_and_without_a_log_it_is_nobodys(tmp_path: Path) -> None:
    path = tmp_path / "issue.md"
    path.write_text(f"GPU 0: NVIDIA L4\nIt is slow:\n{LOG}{SMI}")
    capture = read_input(path)
    assert capture.subject.device is not None
    assert capture.subject.device.name == "l4"  # the log's own machine goes before the table's
    path.write_text(f"> GPU 0: NVIDIA L4\n> {SMI}")
    assert not any("Not read" in str(e.data.get("sentence")) for e in read_input(path).events)
