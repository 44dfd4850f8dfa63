"""The replay library, built once."""

from __future__ import annotations

from pathlib import Path

import pytest
from replay import Replay, build


@pytest.fixture(scope="session")
def nvml_library(compiler: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(compiler, tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def replay(nvml_library: Path, tmp_path: Path) -> Replay:
    return Replay(nvml_library, tmp_path)
