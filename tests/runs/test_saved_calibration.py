"""A real run on this CPU whose fit is stored in its capture and kept for the device."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.app import call
from stallscope.kept_devices import find_kept, keep_device
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.spec import DeviceSpec, ProductTime
from stallscope.runner.devices import device_title

pytestmark = pytest.mark.slow


def test_a_run_calibrates_the_machine_that_was_probed_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of each phase one usual step: two, of one run, which test nothing."""
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    products = tuple(
        ProductTime("fp32", 512, size, rows, 1e-8 * size * (1 + rows / 8))
        for size in (512, 8192)
        for rows in (1, 16, 256)
    )
    mine = DeviceSpec(
        *(device_title("cpu"), {"fp32": 1e11}, 1 << 33, 1e10, "achievable"),
        is_cpu=True,
        products=products,
        launch_s=2e-6,
    )
    keep_device(mine)
    capture = tmp_path / "run.sqlite"
    load = ["--requests", "2", "--input-tokens", "16", "--output-tokens", "4", "--warmup", "1"]
    options = [*load, "--device", "cpu", "--capture", str(capture), "--format", "json"]
    assert call(["run", *options, "--save-calibration"]) == 0
    out, err = capsys.readouterr()
    held, kept = read_capture(capture).meta["calibration"], find_kept(mine.name)
    assert kept is not None
    assert kept.calibration is not None
    assert (held["captures"], held["steps"], held["tested"]) == (1, 2, False)
    assert held["device"] == mine.name
    assert (kept.products, kept.launch_s) == (products, 2e-6)
    assert kept.calibration.runs == tuple(held["runs"])
    steps = len(read_capture(capture).steps)
    assert f"calibrated on 2 usual steps of 1 run, one of each phase out of {steps}, too" in err
    report = json.loads(out)
    assert report["calibration"]["used"] is None  # the run is not judged by itself
    assert report["calibration"]["fitted"]["launch"] == held["launch"]
