"""Damaged logs: a capture that can be diagnosed, or one line, and never anything else."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import test_log_failures as failed
import test_other_logs as other
import test_sglang_log as sglang
import test_vllm_log as vllm

from stallscope.analyzers.diagnose import diagnose
from stallscope.errors import StallscopeError
from stallscope.profiler.capture import Capture
from stallscope.profiler.reading import read_input

MUTATIONS = 300
PIECES = (
    b"\0",
    b"\xff",
    b"\n",
    b"\r",
    b"-1",
    b"9" * 40,
    b"nan",
    b"%",
    b"\x1b[0m",
    b"00:00:00",
    b"'",
)
SEEDS = {
    "vllm": vllm.START + vllm.V1 * 4 + vllm.iteration("12-22 21:44:40", 0, vllm.MIXED, 20.0) * 3,
    "sglang": sglang.NEW * 6,
    "tensorrt": f"{other.ITER}elapsed_time = 0.005s, num_scheduled_requests: 10, {other.STATES}\n"
    * 4,
    "llama.cpp": other.OLD + other.NEW,
    "failures": failed.FLAGS + failed.LOAD + failed.LOADED + failed.OOM,
}


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return up to 16 KiB with one to four bytes or stretches changed, cut, doubled or put in."""
    for _ in range(chance.randint(1, 4)):
        at, end = sorted(chance.randrange(len(content) + 1) for _ in range(2))
        stretch = chance.choice(
            (
                content[at : at + 1] and bytes([chance.randrange(256)]) + content[at + 1 : at + 2],
                b"",
                content[at:end] * 2,
                chance.choice(PIECES) + content[at:end],
            )
        )
        content = (content[:at] + stretch + content[end:])[: 16 << 10] or b"x"
    return content


def capture_or_refusal(path: Path) -> Capture | str:
    try:
        return read_input(path)
    except StallscopeError as error:
        return str(error)


@pytest.mark.parametrize("name", SEEDS)
def test_mutations(name: str, tmp_path: Path) -> None:
    chance, path = random.Random(f"log {name}"), tmp_path / "server.log"
    read = 0
    for _ in range(MUTATIONS):
        path.write_bytes(mutated(SEEDS[name].encode(), chance))
        capture = capture_or_refusal(path)
        if isinstance(capture, str):
            assert "\n" not in capture
            continue
        read += 1
        times = [s.t_ns for s in capture.engine_samples]
        assert times == sorted(times)
        assert diagnose(capture).verdict.sentence
    assert read > MUTATIONS / 4  # else the mutations test nothing but the refusal
