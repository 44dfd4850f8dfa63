"""NVML and GPM, through the real binding and the dynamic loader."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from doctor_place import Place

from stallscope.profiler.doctor.nvml import nvml_checks
from stallscope.profiler.evidence import Check

Build = Callable[..., None]
DRIVER = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.15  Tue Mar  5 22:23:56 UTC 2024\n"
ANSWERS = "NVML 12.550.54.15 ({library}), driver 550.54.15: "
# A pynvml of its own, as the distribution pynvml had one up to version 11.
FOREIGN = {
    "pynvml/__init__.py": "class NVMLError(Exception):\n    value = 12\n"
    "def nvmlInit():\n    raise NVMLError('NVML Shared Library Not Found')\n",
    "pynvml-11.5.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: pynvml\nVersion: 11.5.0\n",
    "pynvml-11.5.0.dist-info/RECORD": "pynvml/__init__.py,,\npynvml-11.5.0.dist-info/RECORD,,\n",
}


def found(place: Place) -> dict[str, Check]:
    return {check.name: check for check in nvml_checks(place.surroundings)}


def test_no_library_or_no_driver(place: Place) -> None:
    if Path("/proc/driver/nvidia/version").exists():
        pytest.skip("an NVIDIA driver is loaded here")
    checks = place.checks()
    assert checks["NVML"]["status"] == checks["GPM"]["status"] == "missing"
    assert checks["NVML"]["reason"] == (
        f"NVML does not start: {_loader_says()}; the kernel has no NVIDIA module loaded"
    )


def test_a_file_that_is_no_library(place: Place) -> None:
    library = place.folder / "libnvidia-ml.so.1"
    library.write_text("not a library, but long enough to have a header that is wrong\n" * 2)
    place.environ["LD_LIBRARY_PATH"] = str(place.folder)
    checks = place.checks()
    assert checks["NVML"]["status"] == "missing"
    assert f"{library}: invalid ELF header" in checks["NVML"]["reason"]


def test_devices_and_gpm_are_those_of_the_driver(place: Place, nvml: Build) -> None:
    nvml(DEVICES=2)
    checks = place.checks()
    library = place.folder / "lib/libnvidia-ml.so.1"
    names = "2 × NVIDIA H100 80GB HBM3"
    assert checks["NVML"]["status"] == checks["GPM"]["status"] == "ok"
    assert checks["NVML"]["reason"] == ANSWERS.format(library=library) + names
    assert checks["GPM"]["reason"] == f"NVML says that it is supported: {names}"
    calls = (place.folder / "calls").read_text().split("\n")[:-1]
    per_device = ["handle", "name", "GPM support"]
    versions = ["init", "driver version", "NVML version", "count"]
    assert calls == [*versions, *per_device, *per_device, "shutdown"]


def test_gpm_that_some_or_all_devices_lack(place: Place, nvml: Build) -> None:
    nvml(DEVICES=2, WITHOUT_GPM=1, NAME='"NVIDIA A100-SXM4-80GB"')
    check = found(place)["GPM"]
    assert check.status == "limited"
    assert check.reason == "not supported by NVIDIA A100-SXM4-80GB; it comes with Hopper"


def test_ampere_has_no_gpm(place: Place, nvml: Build) -> None:
    nvml(DEVICES=1, WITHOUT_GPM=0, NAME='"NVIDIA A100-SXM4-80GB"')
    checks = found(place)
    assert (checks["NVML"].status, checks["GPM"].status) == ("ok", "missing")
    assert "ncu" in str(checks["GPM"].fix)


def test_a_lost_device_is_named(place: Place, nvml: Build) -> None:
    nvml(DEVICES=2, LOST=1)
    checks = found(place)
    assert checks["NVML"].status == checks["GPM"].status == "limited"
    assert checks["NVML"].reason.endswith("device 1: GPU is lost")
    assert checks["GPM"].reason == "not supported by device 1 (GPU is lost)"


@pytest.mark.parametrize(
    ("code", "said", "fix"),
    [
        (4, "Insufficient Permissions", "/dev/nvidiactl"),
        (9, "Driver Not Loaded", "sudo modprobe nvidia"),
        (18, "RM has detected an NVML/RM version mismatch.", "reboot"),
        (999, "Unknown Error", "dmesg"),
    ],
)
def test_nvml_that_does_not_start(
    place: Place, nvml: Build, code: int, said: str, fix: str
) -> None:
    nvml(INIT=code)
    place.files({"/proc/driver/nvidia/version": DRIVER})
    check = found(place)["NVML"]
    assert check.status == "missing"
    assert check.reason == f"NVML does not start: {said}; the kernel has {DRIVER.strip()}"
    assert fix in str(check.fix)


def test_no_device(place: Place, nvml: Build) -> None:
    nvml(DEVICES=0)
    checks = found(place)
    assert (checks["NVML"].status, checks["GPM"].status) == ("missing", "missing")
    assert checks["NVML"].reason.endswith("driver 550.54.15: no device")


def test_nvml_that_hangs_is_unknown(place: Place, nvml: Build) -> None:
    nvml(HANGS=1)
    start_s = time.monotonic()
    checks = place.checks("--timeout", "3")
    assert time.monotonic() - start_s < 60
    assert checks["NVML"]["status"] == checks["GPM"]["status"] == "unknown"
    assert checks["NVML"]["reason"] == "a process that asks it gave no answer within 3 s"


def test_the_official_binding(place: Place) -> None:
    from importlib.metadata import version

    check = place.checks()["pynvml binding"]
    assert check["reason"] == f"nvidia-ml-py {version('nvidia-ml-py')}, NVIDIA's own"
    assert check["status"] == "ok"


def test_a_foreign_binding_in_front(place: Place) -> None:
    place.install(FOREIGN)
    checks = place.checks()
    check = checks["pynvml binding"]
    origin = place.packages / "pynvml/__init__.py"
    reason = f"pynvml is from pynvml 11.5.0 ({origin}), not NVIDIA's nvidia-ml-py"
    assert (check["status"], check["reason"]) == ("limited", reason)
    fix = "pip uninstall -y pynvml; pip install --force-reinstall nvidia-ml-py"
    assert check["fix"] == fix
    assert checks["NVML"]["status"] == "missing"


def test_a_foreign_distribution_beside_the_official(place: Place) -> None:
    # pynvml from version 12 on has no module pynvml of its own any more.
    metadata = "Metadata-Version: 2.1\nName: pynvml\nVersion: 12.0.0\n"
    record = "pynvml_utils/__init__.py,,\n"
    folder = "pynvml-12.0.0.dist-info"
    place.install({f"{folder}/METADATA": metadata, f"{folder}/RECORD": record})
    check = place.checks()["pynvml binding"]
    assert check["status"] == "limited"
    assert "answers, but pynvml 12.0.0 is installed besides" in check["reason"]
    assert check["fix"] == "pip uninstall -y pynvml"


def test_a_module_of_no_distribution(place: Place) -> None:
    place.install({"pynvml.py": "def nvmlInit():\n    pass\n"})
    checks = place.checks()
    check = checks["pynvml binding"]
    origin = place.packages / "pynvml.py"
    assert check["status"] == "limited"
    assert check["reason"].startswith(f"pynvml is of no known distribution ({origin})")
    assert check["fix"].startswith(f"remove {origin}; ")
    # It initialises, which is all it can: no tick for NVML.
    assert checks["NVML"]["status"] == "missing"
    assert "AttributeError: module 'pynvml' has no attribute" in checks["NVML"]["reason"]


def test_an_old_official_binding(place: Place) -> None:
    source = importlib.util.find_spec("pynvml")
    assert source is not None
    assert source.origin is not None
    folder = "nvidia_ml_py-11.515.75.dist-info"
    place.install(
        {
            "pynvml.py": Path(source.origin).read_text(),
            f"{folder}/METADATA": "Name: nvidia-ml-py\nVersion: 11.515.75\n",
            f"{folder}/RECORD": "pynvml.py,,\n",
        }
    )
    check = place.checks()["pynvml binding"]
    assert (check["status"], check["reason"]) == ("limited", "nvidia-ml-py 11.515.75 is old")
    assert check["fix"] == "pip install --upgrade 'nvidia-ml-py>=12.535'"


def _loader_says() -> str:
    import ctypes

    try:
        ctypes.CDLL("libnvidia-ml.so.1")
    except OSError as error:
        return str(error)
    return "Driver Not Loaded"  # the library alone, as Debian's libnvidia-ml1 brings it
