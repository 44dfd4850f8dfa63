"""The names that other people's code may import from `stallscope`, each of them there."""

from __future__ import annotations

import subprocess
import sys

import pytest

import stallscope

PUBLIC = ["Capture", "Recorder", "diagnose", "load_device", "load_model", "read_capture"]


def test_public_names_are_these() -> None:
    assert sorted(stallscope.__all__) == sorted([*PUBLIC, "__version__"])


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_leads_to_its_own_object(name: str) -> None:
    thing = getattr(stallscope, name)
    assert callable(thing)
    assert thing.__name__ == name
    assert thing.__module__.startswith(("stallscope.profiler.", "stallscope.analyzers."))


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = stallscope.nothing


def test_star_import_brings_every_public_name() -> None:
    program = "from stallscope import *; print(*sorted(n for n in dir() if n[0].isalpha()))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.split() == PUBLIC
