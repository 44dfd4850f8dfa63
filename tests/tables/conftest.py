"""The benchmark's own modules, and the folder of public tables."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))


@pytest.fixture(scope="session")
def tables(corpus: Path) -> Path:
    """The folder of public tables of measurements."""
    return corpus / "tables"
