"""A name that the system refuses (too long here; a folder that may not be entered) is one line."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.app import call

TOO_LONG = "a" * 300  # bytes; file systems end at 255


@pytest.mark.parametrize(
    "command",
    [
        ["diagnose", TOO_LONG],
        ["diagnose", TOO_LONG, "server.log"],
        ["diagnose", "server.log", "-o", f"{TOO_LONG}.md"],
        ["diagnose", "server.log", "--thresholds", TOO_LONG],
        ["compare", TOO_LONG, "server.log"],
        ["plan", "--model", TOO_LONG],
        ["plan", "--model", "llama-7b", "--gpu-file", TOO_LONG],
        ["plan", "--model", "llama-7b", "--gpu", "l4", "--calibrate", TOO_LONG],
        ["plan", "--probe", "--write-gpu-file", TOO_LONG],
        ["run", "--capture", TOO_LONG],
        ["run", "--trace", TOO_LONG],
        ["attach", "127.0.0.1:9", "--capture", TOO_LONG],
        ["attach", "127.0.0.1:9", "--ca", TOO_LONG],
    ],
    ids=lambda command: " ".join(command)[:40],
)
def test_a_name_that_the_system_refuses_is_one_line(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    command: list[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("server.log").write_text("nothing\n")
    assert call(command) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert "File name too long" in line


def test_a_root_of_such_a_name_is_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["doctor", "--root", TOO_LONG]) == 2
    assert capsys.readouterr().err == f"stallscope: --root {TOO_LONG}: is no folder\n"


@pytest.mark.parametrize(
    "line",
    [
        ["diagnose", "x.log", "--max-num-seqs"],
        ["attach", "localhost:1", "--max-num-seqs"],
        ["run", "--max-num-seqs"],
        ["run", "--max-num-batched-tokens"],
        ["plan", "--concurrency"],
        ["plan", "--gpus"],
    ],
)
def test_a_count_that_no_engine_takes(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert call([*line, "2147483648"]) == 2  # 2 ** 31: the first that 32 bits do not hold
    assert (
        f"'{line[-1]}': Input should be less than or equal to 2147483647" in capsys.readouterr().err
    )
