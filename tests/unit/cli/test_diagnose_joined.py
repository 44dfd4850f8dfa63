"""`diagnose` on several sources of one run, and the option that sets a clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.app import call
from stallscope.errors import UsageError
from stallscope.offsets import offsets_of

LINE = (
    "INFO 06-17 {clock} [loggers.py:259] Engine 000: Avg prompt throughput: 0.0 tokens/s, Avg "
    "generation throughput: {made} tokens/s, Running: {running} reqs, Waiting: 0 reqs, GPU KV "
    "cache usage: 9.0%, Prefix cache hit rate: 0.0%\n"
)


def clock(second: int) -> str:
    return f"{12 + second // 3600}:{second // 60 % 60:02d}:{second % 60:02d}"


def files(folder: Path, *, ahead_s: int = 0) -> list[str]:
    """Write a log of a server that works from 60 s to 180 s, and its GPU's record."""
    log = "INFO 06-17 12:00:00 [api.py:1] vLLM API server version 0.11.0\n"
    for second in range(10, 301, 10):
        busy = 60 < second <= 180
        log += LINE.format(clock=clock(second), made=90.0 if busy else 0.0, running=4 * busy)
    csv = "timestamp, index, name, utilization.gpu [%]\n"
    for second in range(301):
        util = 90 if 60 < second <= 180 else 0
        at = f"2025/06/17 {clock(second + ahead_s)}.000"
        csv += f"{at}, 0, NVIDIA H100 80GB HBM3, {util} %\n"
    (folder / "server.log").write_text(log)
    (folder / "gpu.csv").write_text(csv)
    return [str(folder / "server.log"), str(folder / "gpu.csv")]


def test_the_report_says_how_the_clocks_were_joined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = files(tmp_path, ahead_s=3600)
    assert call(["diagnose", *given, "--format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert [s["path"] for s in report["capture"]["sources"]] == given
    assert [s["offset_s"] for s in report["capture"]["sources"]] == [0, 0]
    assert report["capture"]["sources"][1]["offset_error_s"] > 0
    assert any("gpu.csv's shows 1 h ahead of server.log's" in note for note in report["notes"])
    busy = [m["value"] for m in report["measures"] if m["name"] == "gpu_busy"]
    # Busy at 90 % in the 120 samples from 61 s to 180 s, of 301 in the run's span.
    assert busy == pytest.approx([0.9 * 120 / 301])
    assert call(["diagnose", *given]) == 0
    assert "begins and ends of work" in " ".join(capsys.readouterr().out.split())


def test_an_offset_is_named_by_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = files(tmp_path, ahead_s=7200)
    assert call(["diagnose", *given, "--offset", "gpu.csv=-7200", "--format", "json"]) == 0
    notes = json.loads(capsys.readouterr().out)["notes"]
    assert any("gpu.csv is joined with server.log as --offset says: 2 of 2" in n for n in notes)


def test_files_that_cannot_be_joined_are_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = files(tmp_path)
    assert call(["diagnose", *given, "--offset", "gpu.csv=9000"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(
        "stallscope: server.log and gpu.csv do not overlap in time with the --off"
    )
    assert err.count("\n") == 1


def test_offsets_by_file() -> None:
    given = ["logs/server.log", "a/gpu.csv", "b/gpu.csv"]
    found = offsets_of(["server.log=-3600", "b/gpu.csv=+1.5"], given)
    assert found == {Path("logs/server.log"): -3600.0, Path("b/gpu.csv"): 1.5}
    assert offsets_of(["a=b.csv=2"], ["a=b.csv", "x"]) == {Path("a=b.csv"): 2.0}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("gpu.csv", "say SOURCE=SECONDS, such as gpu.csv=-3600"),
        ("=5", "say SOURCE=SECONDS"),
        ("gpu.csv=5", "several of the files are called so; given are x.log, a/gpu.csv, b/gpu.csv"),
        ("y.log=5", "none of the files is called so"),
        ("x.log=1h", "'1h' is no number of seconds"),
        ("x.log=nan", "'nan' is no number of seconds"),
        ("x.log=1e300", "'1e300' is no number of seconds"),
    ],
)
def test_offsets_that_say_nothing(value: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        offsets_of([value], ["x.log", "a/gpu.csv", "b/gpu.csv"])
    assert words in str(caught.value)


def test_an_offset_twice_or_for_one_file() -> None:
    with pytest.raises(UsageError, match=r"x\.log is set twice"):
        offsets_of(["x.log=1", "x.log=2"], ["x.log", "y.log"])
    with pytest.raises(UsageError, match="only one is given"):
        offsets_of(["x.log=1"], ["x.log"])
