"""What a log states and is not used is named: values that cannot be, and other servers' lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import periodic, read

SGLANG = (
    "[2025-09-03 18:33:1{} TP0] Decode batch. #running-req: 4, #token: 900, token usage: {}, "
    "gen throughput (token/s): 80.00, #queue-req: 2, \n"
)


def notes(folder: Path, text: str) -> list[str]:
    said = (e.data.get("sentence") for e in read(folder, text).events if e.kind == "check")
    return [str(s) for s in said if str(s).startswith("The log ")]


def log(running: int = 75, waiting: int = 22, used: float = 99.0, made: float = 100.0) -> str:
    return "".join(
        periodic(f"09-03 06:32:{s}", running, waiting, used, made=made) for s in (10, 20, 30)
    )


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        (log(used=300.0), "KV cache usage: 300.0"),
        (log(used=100.1), "KV cache usage: 100.1"),
        (log(running=-75), "Running: -75"),
        (log(waiting=-1), "Waiting: -1"),
        (log(made=float("nan")), "Avg generation throughput: nan"),
        (log(made=float("inf")), "Avg generation throughput: inf"),
        # More digits than any gauge has, which are not read as one.
        (log(running=10**12 + 1), "Running: 1000000000001"),
        (log(running=10**22), "Running: 10000000000000000000000"),
        (log(made=1e300), "Avg generation throughput: 1e+300"),
        ("".join(SGLANG.format(i, "1.02") for i in range(3)), "token usage: 1.02"),
    ],
)
def test_a_value_that_cannot_be_is_named(text: str, stated: str, tmp_path: Path) -> None:
    assert notes(tmp_path, text) == [
        f'The log states "{stated}" or the like 3 times: that cannot be, not used.'
    ]


@pytest.mark.parametrize(
    "text",
    [
        log(used=100.0),
        log(running=0, waiting=0, used=0.0, made=0.0),
        "".join(SGLANG.format(i, "1.00") for i in range(3)),
    ],
)
def test_a_value_at_its_bound_is_used(text: str, tmp_path: Path) -> None:
    assert notes(tmp_path, text) == []


def test_lines_of_a_second_server_are_named(tmp_path: Path) -> None:
    other = "".join(SGLANG.format(i, "0.50") for i in range(5))
    assert notes(tmp_path, log() + other) == [
        "The log also holds 3 lines of a server of vllm: only those of sglang were read; give each "
        "server's log alone."
    ]
    assert notes(tmp_path, log() + log() + SGLANG.format(1, "0.50")) == [
        "The log also holds 1 line of a server of sglang: only those of vllm were read; give each "
        "server's log alone."
    ]
