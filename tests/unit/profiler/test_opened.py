"""What is packed by gzip is read as what it holds, whatever tool printed that."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.profiler import opened
from stallscope.profiler.capture import Capture
from stallscope.profiler.file_kinds import input_kind
from stallscope.profiler.reading import read_input

TELEMETRY = "timestamp, index, name, utilization.gpu [%], memory.used [MiB]\n" + "".join(
    f"2026/02/03 10:00:0{i}.000, 0, NVIDIA L40S, {90 + i} %, {1000 + i} MiB\n" for i in range(5)
)
PAGE = (
    'vllm:num_requests_running{engine="0",model_name="a/b"} 64.0\n'
    'vllm:num_requests_waiting{engine="0",model_name="a/b"} 30.0\n'
)
BENCH = json.dumps(
    {
        "backend": "vllm",
        "max_concurrency": 4,
        "completed": 10,
        "duration": 20.0,
        "total_input_tokens": 100,
        "total_output_tokens": 1280,
        "output_throughput": 64.0,
        "mean_ttft_ms": 100.0,
    }
)
BLOCK = """\
============ Serving Benchmark Result ============
Successful requests:                     100
Benchmark duration (s):                  955.00
Total input tokens:                      100000
Total generated tokens:                  700000
Mean TTFT (ms):                          700.00
==================================================
"""
NCU = (
    '==PROF== Connected to process 7\n"ID","Kernel Name","Device","Metric Name","Metric Unit",'
    '"Metric Value"\n"0","gemv2T_kernel_val","0","Duration","us","4.00"\n'
)
TEXTS = {
    "telemetry": TELEMETRY,
    "page": PAGE,
    "json": BENCH,
    "block": BLOCK,
    "ncu": NCU,
    "pieces": f"It is slow:\n{PAGE}\nand\n{TELEMETRY}",
}


def read(folder: Path, content: bytes) -> Capture:
    path = folder / "file"
    path.write_bytes(content)
    return read_input(path)


@pytest.mark.parametrize("name", TEXTS)
def test_packed_and_plain_are_the_same(name: str, tmp_path: Path) -> None:
    plain = TEXTS[name].encode()
    found = read(tmp_path, plain)
    kind = input_kind(tmp_path / "file")
    assert found.meta or found.device_samples
    assert read(tmp_path, gzip.compress(plain)) == found
    assert input_kind(tmp_path / "file") is kind
    half = len(plain) // 2
    assert read(tmp_path, gzip.compress(plain[:half]) + gzip.compress(plain[half:])) == found
    if name in ("telemetry", "page"):
        assert read(tmp_path, gzip.compress(plain.decode().encode("utf-16"))) == found


@pytest.mark.parametrize("name", ["telemetry", "page", "json", "ncu"])
def test_what_unpacks_to_too_much_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert opened.MOST_UNPACKED == 1 << 30
    plain = TEXTS[name].encode()
    monkeypatch.setattr(opened, "MOST_UNPACKED", len(plain))
    read(tmp_path, gzip.compress(plain))
    with pytest.raises(InputError, match="file unpacks to more than .* GiB; unpack it and give"):
        read(tmp_path, gzip.compress(plain + b"\n"))


def test_a_stream_that_is_cut_gives_what_came_before(tmp_path: Path) -> None:
    rows = "".join(
        f"2026/02/03 10:{i // 60:02d}:{i % 60:02d}.000, {i % 97} %\n" for i in range(3000)
    )
    packed = gzip.compress(("timestamp, utilization.gpu [%]\n" + rows).encode())
    whole = read(tmp_path, packed).device_samples
    part = read(tmp_path, packed[: len(packed) // 2]).device_samples
    assert 100 < len(part) < len(whole) == 3000
    assert part[:-1] == whole[: len(part) - 1]
