"""Fixtures for what a test needs from outside: absent means skip, or fail where required."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def absent(requirement: str, reason: str) -> None:
    """Skip the test, or fail it when STALLSCOPE_REQUIRE (a comma list) names `requirement`."""
    required = os.environ.get("STALLSCOPE_REQUIRE", "").split(",")
    if requirement in [name.strip() for name in required]:
        pytest.fail(f"STALLSCOPE_REQUIRE asks for {requirement}, but {reason}")
    pytest.skip(f"{requirement}: {reason}")


@pytest.fixture(scope="session")
def corpus() -> Path:
    """The folder of real captures: STALLSCOPE_CORPUS, else ../shared/corpus beside the checkout."""
    folder = Path(os.environ.get("STALLSCOPE_CORPUS", ROOT.parent / "shared" / "corpus"))
    if not folder.is_dir():
        absent("corpus", f"{folder} is not there; set STALLSCOPE_CORPUS to the folder of captures")
    return folder
