"""No NVML: every counter says the one reason and what to do, and the run goes on."""

from __future__ import annotations

import os
from pathlib import Path

import pynvml  # noqa: TID253 (only its path is asked for)
import pytest
from replay import LIBRARY, RECORD, Replay, missing, run

from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.nvml import pcie
from stallscope.profiler.nvml.sampler import UNITS

STEP = """
    with recorder.decode(batch=1):
        time.sleep(0.01)
"""
HEAD = "import time, stallscope\nstart = time.perf_counter_ns()\nwait_until = lambda second: None\n"


def recorded(tmp_path: Path, env: dict[str, str], record: str = RECORD) -> Capture:
    path = tmp_path / "run.sqlite"
    body = record.format(device="cuda:0", hz=10, body=STEP, seconds=0)
    done = run(f"{HEAD}path = {str(path)!r}\n{body}", env)
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return read_capture(path)


def the_one_reason(capture: Capture) -> tuple[str, str]:
    """Check that the run went on without a GPU's samples, and return why there are none."""
    assert len(capture.steps) == 1
    assert {s.device for s in capture.device_samples} <= {"host"}
    assert capture.subject.device is None
    absent = missing(capture)
    assert {*UNITS, *pcie.UNITS} <= set(absent)
    (why,) = {absent[name] for name in (*UNITS, *pcie.UNITS)}
    return why


def test_no_library(tmp_path: Path) -> None:
    # An unreadable library stands first, should this machine have one.
    (tmp_path / LIBRARY).write_bytes(b"no library")
    capture = recorded(tmp_path, {"LD_LIBRARY_PATH": str(tmp_path)})
    reason, how = the_one_reason(capture)
    assert reason == "NVML's library, libnvidia-ml.so.1, is not found"
    assert how.startswith("install the NVIDIA driver; in a container: start it with --gpus all")


def test_no_driver_behind_the_replay(replay: Replay) -> None:
    reason, how = the_one_reason(replay.record("no_driver", body=STEP))
    assert reason == "NVML returned Driver Not Loaded"
    assert how.startswith("load the driver: sudo modprobe nvidia")


def test_no_driver_behind_debians_own_library(debian_nvml: Path, tmp_path: Path) -> None:
    capture = recorded(tmp_path, {"LD_LIBRARY_PATH": str(debian_nvml)})
    assert the_one_reason(capture)[0] == "NVML returned Driver Not Loaded"


def test_the_deprecated_binding_is_told_apart(replay: Replay) -> None:
    # What pynvml 11.5 installs: a package of the module's name, and its metadata.
    old = replay.folder / "old"
    (old / "pynvml").mkdir(parents=True)
    (old / "pynvml" / "__init__.py").write_text("raise SystemExit('imported')\n")
    info = old / "pynvml-11.5.3.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pynvml\nVersion: 11.5.3\n")
    (info / "RECORD").write_text("pynvml/__init__.py,,\n")
    reason, how = the_one_reason(
        replay.record("a100", body=STEP, env={"PYTHONPATH": os.pathsep.join([str(old)])})
    )
    assert reason == (
        "the deprecated package pynvml 11.5.3 hides nvidia-ml-py, NVIDIA's own binding"
    )
    assert how == "pip uninstall --yes pynvml && pip install --force-reinstall nvidia-ml-py"


def test_a_module_that_only_has_the_name_is_told_apart(replay: Replay) -> None:
    other = replay.folder / "other"
    other.mkdir()
    (other / "pynvml.py").write_text(Path(pynvml.__file__).read_text())
    env = {"PYTHONPATH": str(other)}
    reason, how = the_one_reason(replay.record("a100", body=STEP, env=env))
    assert reason == f"the module pynvml is not nvidia-ml-py's: {other / 'pynvml.py'}"
    assert how.startswith(f"remove or rename {other / 'pynvml.py'}")


@pytest.mark.parametrize("name", ["gpu0", "cuda:", "cuda:x", "CUDA:0", ""])
def test_a_name_that_no_device_has_is_the_callers_mistake(tmp_path: Path, name: str) -> None:
    from stallscope.profiler.recorder import Recorder

    with pytest.raises(ValueError, match='a device is "cpu", "cuda" or "cuda:N"'):
        Recorder(tmp_path / "run.sqlite", device=name)
    assert not (tmp_path / "run.sqlite").exists()
