"""Real vLLM servers on this machine's CPU, started once each, and the command that watches them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from vllm_attach import Watch
from vllm_device import write_device
from vllm_server import Server, serving
from vllm_venv import build_venv, cache_folder, write_model


@pytest.fixture(scope="session")
def vllm_python(lacking: Callable[[str, str], None]) -> Path:
    """The Python of a venv with vLLM; it takes gigabytes, so it is built where asked for only."""
    is_asked_for = "vllm" in os.environ.get("STALLSCOPE_REQUIRE", "").split(",")
    if not (is_asked_for or cache_folder().is_dir()):
        lacking("vllm", f"{cache_folder()} is not there; STALLSCOPE_REQUIRE=vllm builds it")
    try:
        return build_venv()
    except subprocess.CalledProcessError as failed:
        lacking("vllm", f"it cannot be installed here: {failed.stderr[-500:]}")
        raise


@pytest.fixture(scope="session")
def vllm_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the config of a tiny Llama."""
    return write_model(tmp_path_factory.mktemp("model") / "tiny")


@pytest.fixture(scope="session")
def device_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What one core of this machine reaches, for --gpu-file; probed before a server takes it."""
    return write_device(tmp_path_factory.mktemp("device") / "core.json")


@pytest.fixture(scope="session")
def capped(
    vllm_python: Path,
    vllm_model: Path,
    device_file: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Server]:
    """At most 120 running, KV for 65,536 tokens, and the engine's own estimates of its work."""
    log = tmp_path_factory.mktemp("capped") / "server.log"
    options = ("--max-num-seqs", "120", "--enable-mfu-metrics")
    with serving(vllm_python, vllm_model, log, *options) as server:
        yield server


@pytest.fixture(scope="session")
def small_pool(
    vllm_python: Path, vllm_model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    """KV for 16,384 tokens (128 blocks of 128), far below what 128 running requests may want."""
    log = tmp_path_factory.mktemp("small_pool") / "server.log"
    options = ("--max-num-seqs", "128", "--num-gpu-blocks-override", "128")
    with serving(vllm_python, vllm_model, log, *options) as server:
        yield server


@pytest.fixture
def attach(tmp_path: Path) -> Watch:
    """Watch a server by the command; reports and captures are kept for the test."""
    return Watch(tmp_path)
