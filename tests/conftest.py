"""Fixtures for what a test needs from outside: absent means skip, or fail where required."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

# Where everything is required the same examples are tried each time, so that a change is judged by
# itself; elsewhere hypothesis goes on searching.
settings.register_profile("same", derandomize=True, deadline=None)
if os.environ.get("STALLSCOPE_REQUIRE"):
    settings.load_profile("same")

ROOT = Path(__file__).resolve().parents[1]


def absent(requirement: str, reason: str) -> None:
    """Skip the test, or fail it when STALLSCOPE_REQUIRE (a comma list) names `requirement`."""
    required = os.environ.get("STALLSCOPE_REQUIRE", "").split(",")
    if requirement in [name.strip() for name in required]:
        pytest.fail(f"STALLSCOPE_REQUIRE asks for {requirement}, but {reason}")
    pytest.skip(f"{requirement}: {reason}")


@pytest.fixture(scope="session", autouse=True)
def _no_kept_devices(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the user keeps of devices is neither read nor written, by this process or by others."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Tests marked gpu need a CUDA device."""
    if item.get_closest_marker("gpu") is None:
        return
    import torch

    if not torch.cuda.is_available():
        absent("gpu", "torch sees no CUDA device")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real captures: STALLSCOPE_CORPUS, else ../shared/corpus beside the checkout."""
    folder = Path(os.environ.get("STALLSCOPE_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not folder.is_dir():
        absent("corpus", f"{folder} is not there; set STALLSCOPE_CORPUS to the folder of captures")
    return folder


@pytest.fixture(scope="session")
def lacking() -> Callable[[str, str], None]:
    """What fixtures elsewhere call with a requirement and the reason why it is not here."""
    return absent


@pytest.fixture(scope="session")
def compiler() -> str:
    """The C compiler, for small programs and libraries that stand in for a vendor's."""
    return _program("cc")


@pytest.fixture(scope="session")
def nsys() -> str:
    """The real Nsight Systems."""
    return _program("nsys")


@pytest.fixture(scope="session")
def prometheus() -> str:
    """The real Prometheus server."""
    return _program("prometheus")


@pytest.fixture(scope="session")
def debian_nvml() -> Path:
    """The folder of Debian's own libnvidia-ml.so.1, on a machine whose driver is not loaded."""
    given = os.environ.get("STALLSCOPE_DEBIAN_NVML")
    folders = [Path(given)] if given else sorted(Path("/usr/lib").glob("*-linux-gnu/nvidia/*"))
    for folder in folders:
        if (folder / "libnvidia-ml.so.1").is_file():
            if Path("/proc/driver/nvidia").exists():
                pytest.skip("the NVIDIA driver is loaded here")
            return folder
    absent("libnvidia-ml1", "no folder holds it; see scripts/debian-nvml")
    raise AssertionError


def _program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        absent(name, f"{name} is not on PATH")
    return str(found)
