"""`stallscope compare`, as a user types it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.app import call

THREADS = "threads,pages/s\n1,14.0\n2,16.8\n6,4\n"


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "runs.csv"
    path.write_text(THREADS)
    return path


def test_the_answer_and_the_runs(table: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["compare", str(table)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith(
        "The host limits: with more than 2 of the host's threads it takes up to 4.2 × as long"
    )
    assert "16.8 pages/s" in said.out
    assert "1.20 ×" in said.out  # 16.8 / 14.0
    assert said.err == ""


def test_json_and_fail_on(table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "out.json"
    assert call(["compare", str(table), "-o", str(target), "--fail-on", "host"]) == 4
    report = json.loads(target.read_text())
    assert report["schema"] == 1
    assert report["vary"] == "threads"
    assert report["metric"] == "pages_per_s"
    assert report["verdict"]["class"] == "host"
    assert [run["figures"]["pages_per_s"]["value"] for run in report["runs"]] == [14.0, 16.8, 4.0]
    assert report["findings"][0]["class"] == "host"
    assert "wrote" in capsys.readouterr().err


def test_markdown(table: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.md"
    assert call(["compare", str(table), "-o", str(target)]) == 0
    assert "| line 3" in target.read_text()


def test_a_server_log_for_each_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    line = (
        "INFO 11-30 10:00:{second:02d} [loggers.py:1] Engine 000: Avg prompt throughput: 0.0 "
        "tokens/s, Avg generation throughput: {rate:.1f} tokens/s, Running: 64 reqs, Waiting: 0 "
        "reqs, GPU KV cache usage: 30.0%, Prefix cache hit rate: 0.0%\n"
    )
    for name, rate in (("without", 2434.0), ("with", 120.0)):
        text = "".join(line.format(second=second, rate=rate) for second in (0, 10, 20, 30))
        (tmp_path / f"{name}.log").write_text(text)
    files = [str(tmp_path / "without.log"), str(tmp_path / "with.log")]
    options = ["--vary", "cpu_offload_gb", "--values", "0,35", "--format", "json"]
    assert call(["compare", *files, *options]) == 0
    report = json.loads(capsys.readouterr().out)
    # 1 − 120 / 2434 of the slow run's time follows what is kept on the host.
    assert report["findings"][0]["share"] == pytest.approx(1 - 120 / 2434, rel=1e-3)
    assert report["verdict"]["class"] == "interconnect"
    assert [run["class"] for run in report["runs"]] == ["undetermined", "undetermined"]
    assert [run["name"] for run in report["runs"]] == ["without.log", "with.log"]


def benchmark(folder: Path, name: str, *, clients: int, tokens_per_s: float) -> str:
    """Write results of clients that each have a request in flight, one token every 10 ms."""
    row = {
        "backend": "vllm",
        "num_prompts": 80,
        "completed": 80,
        "duration": 100.0,
        "total_input_tokens": 8000,
        "total_output_tokens": round(tokens_per_s * 100),
        "output_throughput": tokens_per_s,
        "mean_ttft_ms": 100.0,
        "mean_tpot_ms": 10.0,
        "mean_e2el_ms": 1000.0 * clients * 100 / 80,
        "max_concurrency": clients,
    }
    path = folder / name
    path.write_text(json.dumps(row))
    return str(path)


@pytest.mark.parametrize(
    ("vary", "values", "says"),
    [
        # Eight clients that wait for nothing but decode have some eight requests in decode.
        ("max_num_seqs", "1,8", "a.json: 1 was given, and 7.9 requests were in decode on average"),
        ("max_batch_size", "1,8", "a.json: 1 was given, and 7.9 requests were in decode"),
        ("concurrency", "4,8", "a.json: 4 was given, and the capture itself says 8"),
    ],
)
def test_a_value_that_its_run_contradicts_is_refused(
    vary: str, values: str, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = [
        benchmark(tmp_path, "a.json", clients=8, tokens_per_s=800.0),
        benchmark(tmp_path, "b.json", clients=8, tokens_per_s=900.0),
    ]
    assert call(["compare", *files, "--vary", vary, "--values", values]) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert f"--values: {says}" in said.err
    assert call(["compare", *files, "--vary", "max_num_seqs", "--values", "8,16"]) == 0
    assert call(["compare", *files, "--vary", "gpus", "--values", "1,2"]) == 0
    assert call(["compare", *files, "--vary", "threads", "--values", "1,2"]) == 0


def test_a_value_that_the_table_contradicts_is_refused(
    table: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["compare", str(table), "--vary", "threads", "--values", "1,2,6"]) == 0
    assert call(["compare", str(table), "--vary", "threads", "--values", "1,2,8"]) == 2
    assert "--values: line 4: 8 was given, and the table says 6" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["{table}", "--values", "1,2"], 2, "name it with --vary"),
        (["{table}", "--vary", "x", "--values", "1,2"], 2, "2 of them for 3 runs"),
        (["{table}", "--metric", "speed"], 2, "the runs have pages_per_s"),
        (["{one}"], 2, "two runs or more"),
        (["{none}"], 1, "none.csv"),
        (["{words}"], 1, "no table of runs"),
        (["{broken}"], 1, "line 3: pages/s is 'x'"),
    ],
)
def test_bad_input_is_one_line(
    tmp_path: Path,
    table: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    code: int,
    says: str,
) -> None:
    (tmp_path / "one.csv").write_text("threads,pages/s\n1,14.0\n")
    (tmp_path / "words.csv").write_text("hello\nworld\n")
    (tmp_path / "broken.csv").write_text("threads,pages/s\n1,14.0\n2,x\n")
    names = {name: str(tmp_path / f"{name}.csv") for name in ("one", "none", "words", "broken")}
    given = [argument.format(table=table, **names) for argument in arguments]
    assert call(["compare", *given]) == code
    said = capsys.readouterr()
    assert said.out == ""
    assert says in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize("other", ["same", "link", "copy"])
def test_a_run_beside_itself_is_refused(
    table: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], other: str
) -> None:
    """Else it would exclude whatever --vary names."""
    second = table if other == "same" else tmp_path / f"{other}.csv"
    if other == "link":
        second.symlink_to(table)
    if other == "copy":
        second.write_text(THREADS)
    options = ["--vary", "max_num_seqs", "--values", "1,8"]
    assert call(["compare", str(table), str(second), *options]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    assert f"{second}: " in said.err
    assert "a run beside itself tells nothing" in said.err


def test_two_runs_of_one_size_are_two(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, rate in (("a", "14.0"), ("b", "16.8")):
        (tmp_path / f"{name}.csv").write_text(f"threads,pages/s\n1,{rate}\n")
    assert call(["compare", str(tmp_path / "a.csv"), str(tmp_path / "b.csv")]) == 0
    assert "1.20 ×" in capsys.readouterr().out


def test_a_table_without_figures(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.csv"
    path.write_text("test,qps\n1,2\n")
    assert call(["compare", str(path)]) == 1
    said = capsys.readouterr().err
    assert "c.csv: no table of runs: a table of runs has a header of settings and figures" in said
    assert "diagnose" not in said
