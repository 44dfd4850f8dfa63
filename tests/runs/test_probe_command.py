"""`stallscope plan --probe` on this machine, and a plan by what it wrote."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.app import call
from stallscope.profiler.devices import load_device_file


def test_a_probe_is_written_once_and_planned_with(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "mine.json"
    command = ["plan", "--probe", "--device", "cpu", "--dtype", "fp32"]
    assert call([*command, "--write-gpu-file", str(file), "--format", "json"]) == 0
    out, err = capsys.readouterr()
    probe = json.loads(out)["probe"]
    device = load_device_file(file)
    assert (device.kind, device.is_cpu, list(device.peak_flops)) == ("achievable", True, ["fp32"])
    assert probe["device"]["memory_bytes_per_s"] == device.memory_bytes_per_s
    assert isinstance(probe["disturbed"], bool)
    assert {p.dtype for p in device.products} == {"fp32"}
    assert f"wrote {file}" in err
    # A row's product reads its matrix: no faster than ten times what memory gives, caches or not.
    for product in device.products:
        moved = 4 * product.inputs * product.outputs
        assert moved / product.time_s < 10 * device.memory_bytes_per_s
    before = file.read_bytes()
    assert call([*command, "--write-gpu-file", str(file)]) == 2
    assert "add --force" in capsys.readouterr().err
    assert file.read_bytes() == before
    assert call(["plan", "--model", "tiny-26m", "--dtype", "fp32", "--gpu-file", str(file)]) == 0
    assert "tiny-26m with fp32 weights" in capsys.readouterr().out
