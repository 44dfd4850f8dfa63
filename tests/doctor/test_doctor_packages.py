"""Packages are imported for real before they get a tick."""

from __future__ import annotations

from importlib.metadata import version

import pytest
from doctor_place import Place

from stallscope.profiler.doctor.packages import matplotlib_check, torch_check

DRIVER = {"/proc/driver/nvidia/version": "NVRM version: NVIDIA UNIX x86_64\n"}
# Stands first on the path and hides what is installed.
NOT_THERE = "raise ModuleNotFoundError(\"No module named '{0}'\", name='{0}')\n"


def torch(cuda: str | None, devices: int, version: str = "2.6.0", said: str = "") -> dict[str, str]:
    """Return a module that says of itself what torch says."""
    available = f"(warnings.warn({said!r}), {devices > 0})[1]" if said else f"{devices > 0}"
    text = (
        "import warnings\nfrom types import SimpleNamespace as space\n"
        f"__version__ = {version!r}\nversion = space(cuda={cuda!r}, hip=None)\n"
        f"cuda = space(is_available=lambda: {available}, device_count=lambda: {devices})\n"
    )
    return {"torch/__init__.py": text}


def test_packages_that_are_not_there(place: Place) -> None:
    names = ("torch", "transformers", "matplotlib", "nvtx")
    place.install({f"{name}/__init__.py": NOT_THERE.format(name) for name in names})
    checks = place.checks()
    for check in map(checks.__getitem__, names):
        assert (check["status"], check["reason"]) == ("missing", "not installed")
        assert check["fix"].startswith("pip install ")


def test_a_package_that_is_there_and_broken(place: Place) -> None:
    place.install(
        {
            "torch/__init__.py": "raise OSError('libcudart.so.12: cannot open shared object')\n",
            "transformers/__init__.py": "import torchvision_of_another_torch\n",
            "matplotlib/figure.py": "import os\nos.abort()\n",
        }
    )
    checks = place.checks()
    assert [checks[name]["status"] for name in ("torch", "transformers", "matplotlib")] == [
        "missing"
    ] * 3
    reason = "ended with code 1: OSError: libcudart.so.12: cannot open shared object"
    assert checks["torch"]["reason"] == f"its import {reason}"
    reason = "its import fails: there is no module torchvision_of_another_torch"
    assert checks["transformers"]["reason"] == reason
    assert checks["matplotlib"]["reason"].startswith("its import ended with signal 6")


def test_an_import_that_hangs(place: Place) -> None:
    place.install({"transformers/__init__.py": "import time\ntime.sleep(600)\n"})
    check = place.checks("--timeout", "3")["transformers"]
    reason = "its import gave no answer within 3 s"
    assert (check["status"], check["reason"]) == ("unknown", reason)


@pytest.mark.parametrize(
    ("module", "driver", "status", "reason"),
    [
        (torch(None, 0), {}, "ok", "2.6.0, built for CPU; no NVIDIA driver here"),
        (torch(None, 0), DRIVER, "limited", "2.6.0, built for CPU, beside an NVIDIA driver"),
        (torch("12.4", 2), DRIVER, "ok", "2.6.0, built for CUDA 12.4, sees 2 devices"),
        (torch("12.4", 0), {}, "ok", "2.6.0, built for CUDA 12.4; no NVIDIA driver here"),
        (torch("12.4", 0), DRIVER, "limited", "sees no device: it does not say why"),
        (
            torch("12.4", 0, said="CUDA initialization: The NVIDIA driver is too old"),
            DRIVER,
            "limited",
            "sees no device: CUDA initialization: The NVIDIA driver is too old",
        ),
        (torch("12.4", 1, "2.4.1"), DRIVER, "limited", "older than 2.5"),
    ],
)
def test_torch_and_what_it_was_built_for(
    place: Place, module: dict[str, str], driver: dict[str, str], status: str, reason: str
) -> None:
    place.install(module)
    place.files(driver)
    check = torch_check(place.surroundings)
    assert check.status == status
    assert reason in check.reason


def test_versions_that_are_too_old(place: Place) -> None:
    place.install({"matplotlib/__init__.py": "__version__ = '3.7.5'\n"})
    check = matplotlib_check(place.surroundings)
    assert (check.status, check.reason) == ("limited", "3.7.5 is older than 3.8")


def test_ranges_that_are_switched_off(place: Place) -> None:
    check = place.checks()["nvtx"]
    assert check["status"] == "ok"
    assert check["reason"].startswith(f"{version('nvtx')}, ")
    assert check["reason"].endswith(" ns a range; without a tool they do nothing")
    place.environ["NVTX_DISABLE"] = "1"
    check = place.checks()["nvtx"]
    assert (check["status"], check["fix"]) == ("limited", "unset NVTX_DISABLE")


@pytest.mark.slow
def test_the_packages_installed_here(place: Place) -> None:
    place.environ["PYTHONPATH"] = ""
    checks = place.checks("--timeout", "120")
    for name in ("torch", "transformers", "matplotlib", "nvtx"):
        assert checks[name]["status"] == "ok"
        assert checks[name]["reason"].startswith(version(name))
