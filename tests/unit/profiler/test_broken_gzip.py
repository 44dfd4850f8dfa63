"""A gzip file that is cut says so, and no process was killed for that."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.broken_gzip import how_broken
from stallscope.profiler.reading import read_input

LOG = (
    b"INFO 12-01 09:10:04 [core.py:455] Initializing a V1 LLM engine (v0.9.1) with config: "
    b"model='a/b', dtype=torch.bfloat16, max_seq_len=32768, tensor_parallel_size=1\n"
)
PACKED = gzip.compress(LOG)  # its last 8 bytes are the check sum and the size


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (PACKED, None),
        (PACKED + PACKED, None),
        (PACKED + b"\0" * 512, None),
        (LOG, None),
        (PACKED[:-9], "cut"),
        (PACKED[:-1], "cut"),
        (PACKED + PACKED[:-9], "cut"),
        (PACKED[:-8] + b"\0" * 8, "damaged"),
    ],
)
def test_a_stream_that_ends_early(content: bytes, said: str | None, tmp_path: Path) -> None:
    path = tmp_path / "x.gz"
    path.write_bytes(content)
    assert how_broken(path) == said


def test_a_cut_log_says_so_and_suggests_no_killed_process(tmp_path: Path) -> None:
    path = tmp_path / "x.log.gz"
    path.write_bytes(PACKED[:-1])
    found = diagnose(read_input(path))
    told = " ".join((found.verdict.sentence, *found.notes))
    assert "The compressed file is cut: its gzip stream ends early" in told
    assert "the compressed file is cut there" in found.verdict.sentence
    assert "killed" not in told
    path.write_bytes(PACKED)
    assert "killed" in diagnose(read_input(path)).verdict.sentence
