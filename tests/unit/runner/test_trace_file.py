"""Workload traces: what is read, and which line is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.runner.trace_file import read_trace
from stallscope.runner.workload import RequestSize


def write(folder: Path, text: str) -> Path:
    path = folder / "trace.jsonl"
    path.write_text(text)
    return path


def test_a_trace_is_sorted_by_arrival(tmp_path: Path) -> None:
    load = read_trace(
        write(
            tmp_path,
            '{"arrival_s": 1.5, "input_tokens": 10, "output_tokens": 2, "note": "x"}\n'
            "\n"
            '{"arrival_s": 0, "input_tokens": 30, "output_tokens": 4}\n',
        )
    )
    assert load.times_ns == (0, 1_500_000_000)
    assert load.sizes == (RequestSize(30, 4), RequestSize(10, 2))


GOOD = '{"arrival_s": 0, "input_tokens": 3, "output_tokens": 4}'


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "not a JSON object"),
        ("[1, 2, 3]", "not a JSON object"),
        ('{"arrival_s": 0, "input_tokens": 3}', "output_tokens must be a whole number"),
        ('{"arrival_s": 0, "input_tokens": 0, "output_tokens": 1}', "input_tokens must be"),
        ('{"arrival_s": 0, "input_tokens": 2.5, "output_tokens": 1}', "input_tokens must be"),
        ('{"arrival_s": 0, "input_tokens": true, "output_tokens": 1}', "input_tokens must be"),
        ('{"arrival_s": -1, "input_tokens": 2, "output_tokens": 1}', "arrival_s must be 0 or more"),
        ('{"arrival_s": NaN, "input_tokens": 2, "output_tokens": 1}', "arrival_s must be 0"),
        ('{"arrival_s": "0", "input_tokens": 2, "output_tokens": 1}', "arrival_s must be a number"),
    ],
)
def test_a_bad_line_is_named(tmp_path: Path, line: str, reason: str) -> None:
    path = write(tmp_path, f"{GOOD}\n{line}\n")
    with pytest.raises(InputError, match=rf"trace\.jsonl:2: {reason}"):
        read_trace(path)


def test_an_empty_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="empty"):
        read_trace(write(tmp_path, "\n\n"))


def test_a_missing_or_binary_trace_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.jsonl: No such file"):
        read_trace(tmp_path / "nowhere.jsonl")
    binary = tmp_path / "binary.jsonl"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not a text file"):
        read_trace(binary)
