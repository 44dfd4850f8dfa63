"""`stallscope run` and `diagnose` as people call them: real runs of a tiny model."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

SCRIPT = str(Path(sys.executable).with_name("stallscope"))
LOAD = ["--requests", "6", "--concurrency", "3", "--input-tokens", "16", "--output-tokens", "4:12"]
pytestmark = pytest.mark.slow


def stallscope(
    *arguments: str, folder: Path, stdin: bytes | None = None
) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, cwd=folder, input=stdin)
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder after one run with a Markdown report; stderr is kept in stderr.txt."""
    folder = tmp_path_factory.mktemp("ran")
    done = stallscope("run", *LOAD, "--capture", "run.sqlite", "-o", "report.md", folder=folder)
    assert (done.returncode, done.stdout) == (0, "")
    (folder / "stderr.txt").write_text(done.stderr)
    return folder


def test_run_leaves_capture_report_and_plots(ran: Path) -> None:
    report = (ran / "report.md").read_text()
    images = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", report)
    assert len(images) >= 2
    for image in images:
        assert ElementTree.parse(ran / image).getroot().tag.endswith("svg")
    left = {path.name for path in ran.iterdir()}
    assert left == {"run.sqlite", "report.md", "stderr.txt", *images}


def test_verdict_and_file_are_named_on_stderr(ran: Path) -> None:
    lines = (ran / "stderr.txt").read_text().splitlines()
    assert all(line.startswith("stallscope: ") for line in lines)
    assert lines[-1] == "stallscope: wrote report.md"
    sentence = lines[-2].removeprefix("stallscope: ")
    judged = json.loads(stallscope("diagnose", "run.sqlite", "--format", "json", folder=ran).stdout)
    assert sentence == judged["verdict"]["sentence"]


def test_every_request_is_in_the_report(ran: Path) -> None:
    judged = json.loads(stallscope("diagnose", "run.sqlite", "--format", "json", folder=ran).stdout)
    assert judged["latency"]["ttft_s"]["n"] == 6
    (source,) = judged["capture"]["sources"]
    assert (source["kind"], source["path"]) == ("stallscope", "run.sqlite")


def test_stdin_is_read_like_the_file(ran: Path) -> None:
    data = (ran / "run.sqlite").read_bytes()
    piped = stallscope("diagnose", "-", "--format", "json", folder=ran, stdin=data)
    named = stallscope("diagnose", "run.sqlite", "--format", "json", folder=ran)
    assert (piped.returncode, piped.stderr) == (0, "")
    assert piped.stdout.replace('"path": "-"', '"path": "run.sqlite"') == named.stdout


def test_fail_on_the_verdict_exits_with_four(ran: Path) -> None:
    judged = json.loads(stallscope("diagnose", "run.sqlite", "--format", "json", folder=ran).stdout)
    hit = judged["verdict"]["class"]
    other = "telemetry"
    assert hit != other
    done = stallscope("diagnose", "run.sqlite", "--fail-on", f"{other},{hit}", folder=ran)
    assert (done.returncode, done.stderr) == (4, "")
    assert done.stdout.startswith(judged["verdict"]["sentence"][:40])
    assert stallscope("diagnose", "run.sqlite", "--fail-on", other, folder=ran).returncode == 0


def test_what_was_recorded_goes_before_facts(ran: Path) -> None:
    facts = ["--gpu", "T4", "--model", "llama-125m", "--gpus", "2", "--dtype", "fp16"]
    done = stallscope("diagnose", "run.sqlite", *facts, "--format", "json", folder=ran)
    report = json.loads(done.stdout)
    subject = report["subject"]
    assert (subject["model"], subject["dtype"]) == ("tiny-26m", "fp32")
    assert subject["device"] != "t4"
    assert subject["devices"] == 2  # one device is what a capture says unasked
    assert [warning.split(" ")[0] for warning in report["warnings"]] == [
        *("--model", "--gpu", "--dtype")
    ]
    said = "--model was not used: llama-125m was given, and the capture itself says tiny-26m."
    assert report["warnings"][0] == said


def test_a_full_disk_behind_stdout_is_one_line(ran: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "stallscope", "diagnose", "run.sqlite"],
            cwd=ran,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )
    assert done.returncode == 1
    assert done.stderr == "stallscope: stdout: cannot write: No space left on device\n"


def test_thresholds_are_used_and_shown(ran: Path) -> None:
    (ran / "lines.toml").write_text("decode_share = 1.0\n")
    arguments = ["diagnose", "run.sqlite", "--thresholds", "lines.toml", "--format", "json"]
    judged = json.loads(stallscope(*arguments, folder=ran).stdout)
    (ran / "lines.toml").unlink()
    assert judged["thresholds"]["decode_share"] == 1.0
    (rule,) = [rule for rule in judged["rules"] if rule["id"] == "decode-focus"]
    assert rule["status"] == "not met"  # no share is above the whole


def test_plot_that_exists_is_not_overwritten_unasked(ran: Path, tmp_path: Path) -> None:
    (tmp_path / "again-timeline.svg").write_text("mine")
    capture = str(ran / "run.sqlite")
    done = stallscope("diagnose", capture, "-o", "again.md", folder=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "again-timeline.svg: exists; add --force" in done.stderr
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


def test_a_plot_is_not_put_in_a_pipes_place(ran: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "again-timeline.svg")
    capture = str(ran / "run.sqlite")
    done = stallscope("diagnose", capture, "-o", "again.md", "--force", folder=tmp_path)
    assert (done.returncode, done.stdout) == (1, "")
    assert "again-timeline.svg: is a pipe, not a regular file" in done.stderr
    assert (tmp_path / "again-timeline.svg").is_fifo()
    assert [path.name for path in tmp_path.iterdir()] == ["again-timeline.svg"]


def test_a_plot_behind_a_link_replaces_the_file(ran: Path, tmp_path: Path) -> None:
    (tmp_path / "real.svg").write_text("old")
    (tmp_path / "again-timeline.svg").symlink_to("real.svg")
    capture = str(ran / "run.sqlite")
    done = stallscope("diagnose", capture, "-o", "again.md", "--force", folder=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "again-timeline.svg").is_symlink()
    assert "<svg" in (tmp_path / "real.svg").read_text()


def blocked(package: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the command line in a Python in which importing `package` fails."""
    program = (
        f"import sys; sys.modules[{package!r}] = None; from stallscope.app import main; main()"
    )
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, cwd=folder)


def test_without_matplotlib_the_report_has_no_plots(ran: Path, tmp_path: Path) -> None:
    capture = str(ran / "run.sqlite")
    done = blocked("matplotlib", "diagnose", capture, "-o", "plain.md", folder=tmp_path)
    assert done.returncode == 0
    assert "no plots: matplotlib is not installed; install it with: pip install" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["plain.md"]
    assert "![" not in (tmp_path / "plain.md").read_text()


def test_without_torch_run_names_the_extra(tmp_path: Path) -> None:
    done = blocked("torch", "run", folder=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(
        r"stallscope: torch is not installed; .*stallscope\[runner\]'\n", done.stderr
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["torch", "transformers"])
def test_without_transformers_its_engine_names_the_extra(package: str, tmp_path: Path) -> None:
    done = blocked(package, "run", "--engine", "transformers", folder=tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert re.fullmatch(
        rf"stallscope: {package} is not installed; .*stallscope\[transformers\]'\n", done.stderr
    )
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_keeps_what_ran(tmp_path: Path) -> None:
    command = [SCRIPT, "run", "--requests", "200", "--concurrency", "4", "--output-tokens", "256"]
    told = []
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        for line in running.stderr or ():
            told.append(line)
            if "running 200 requests" in line:
                time.sleep(2)
                running.send_signal(signal.SIGINT)
    assert running.returncode == 130
    (capture,) = tmp_path.iterdir()  # one closed file under the default name
    assert re.fullmatch(r"stallscope-run-\d{8}-\d{6}\.sqlite", capture.name)
    assert told[-1] == (
        f"stallscope: interrupted; see what ran with: stallscope diagnose {capture.name}\n"
    )
    done = stallscope("diagnose", capture.name, folder=tmp_path)
    assert done.returncode == 0
    assert "interrupted" in done.stdout


def test_ctrl_c_before_the_first_step_leaves_nothing_to_judge(tmp_path: Path) -> None:
    command = [SCRIPT, "run", "--requests", "2", "--output-tokens", "4", "--capture", "a.sqlite"]
    told = []
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as running:
        for line in running.stderr or ():
            told.append(line)
            if "probing" in line:
                time.sleep(0.3)
                running.send_signal(signal.SIGINT)
    assert running.returncode == 130
    assert told[-1] == (
        "stallscope: interrupted before the first step; a.sqlite holds nothing to judge\n"
    )
    done = stallscope("diagnose", "a.sqlite", folder=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("Undetermined: nothing was recorded: the capture holds no step")
    assert "interrupted" in done.stdout
    for word in ("confidence", "Rule check", "To get it", "Thresholds"):
        assert word not in done.stdout
    report = json.loads(
        stallscope("diagnose", "a.sqlite", "--format", "json", folder=tmp_path).stdout
    )
    assert report["capture"]["empty"] is True
    assert (report["verdict"]["class"], report["verdict"]["confidence"]) == ("undetermined", 0)
