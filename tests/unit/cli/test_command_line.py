"""The command line: what it says without work to do, and how it refuses, in one line."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from stallscope import __version__
from stallscope.app import COMMANDS, application, call

SCRIPT = str(Path(sys.executable).with_name("stallscope"))
SMALL = ["--requests", "1", "--output-tokens", "2", "--warmup", "0"]
CONFIG = (
    '{"model_type": "llama", "hidden_size": 64, "intermediate_size": 128, "vocab_size": 256,'
    ' "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 512}'
)
REFUSALS = {
    "unknown command": (["plann"], 2, "No such command 'plann'"),
    "unknown option": (["run", "--bogus"], 2, "No such option: --bogus"),
    "not a number": (["run", "--requests", "x"], 2, "'--requests'"),
    "unknown device": (["run", "--device", "tpu"], 2, "'tpu' is not one of 'auto', 'cpu', 'cuda'"),
    "html": (["run", "-o", "x.html"], 2, "HTML reports are not built yet"),
    "html by name": (["run", "--format", "html"], 2, "HTML reports are not built yet"),
    "unknown suffix": (["run", "-o", "x.doc"], 2, "no report format has this suffix"),
    "existing report": (["run", "-o", "old.md"], 2, "-o old.md: exists; add --force"),
    "existing capture": (["run", "--capture", "old.md"], 2, "--capture old.md: exists"),
    "no such folder": (["run", "-o", "none/x.md"], 1, "cannot write in none: No such file"),
    "folder is a file": (["run", "--capture", "old.md/x"], 1, "cannot write in old.md: Not a"),
    "same file twice": (["run", "-o", "x.md", "--capture", "x.md"], 2, "-o and --capture are both"),
    "unknown class": (["run", "--fail-on", "slow"], 2, "unknown class 'slow'; known: capacity"),
    "thresholds": (["run", "--thresholds", "old.md"], 1, "--thresholds old.md: not TOML"),
    "size": (["run", "--kv-budget", "8M"], 2, "--kv-budget: '8M' is not a size"),
    "transformers": (
        ["run", "--engine", "transformers", "--kv-budget", "1MiB", "--chunked-prefill"],
        2,
        "--engine transformers cannot honour --chunked-prefill, --kv-budget: leave it out",
    ),
    "isolate phases": (["run", "--isolate-phases", "--rate", "1"], 2, "leave --rate out"),
    "unknown preset": (["run", "--model", "tiny-27m"], 1, "tiny-26m"),
    "no such config": (["run", "--model", "none/config.json"], 1, "none/config.json"),
    "invalid JSON": (["run", "--model", "broken.json"], 1, "broken.json"),
    "missing field": (["run", "--model", "partial.json"], 1, "hidden_size"),
    "zero input": (["run", *SMALL, "--input-tokens", "0"], 2, "input"),
    "zero output": (["run", "--output-tokens", "0"], 2, "output"),
    "negative": (["run", *SMALL, "--input-tokens", "-5"], 2, "input"),
    "empty range": (["run", *SMALL, "--input-tokens", "9:3"], 2, "9:3"),
    "no requests": (["run", "--requests", "0"], 2, "requests"),
    "too long": (["run", *SMALL, "--input-tokens", "4095"], 2, "4096"),
    # One request of 128 + 2 tokens writes 129 of them: 9 blocks of 16, 12,288 bytes a token.
    "small budget": (["run", *SMALL, "--kv-budget", "1MiB"], 2, r"1,?769,?472|1\.6875 MiB"),
    "two loads": (["run", *SMALL, "--rate", "1", "--concurrency", "1"], 2, "rate"),
    "int8": (["run", *SMALL, "--dtype", "int8"], 2, "int8"),
    "no file": (["diagnose"], 2, "Missing argument 'FILE'"),
    "stdin and a file": (["diagnose", "-", "a"], 2, "- stands alone"),
    "missing file": (["diagnose", "none.sqlite"], 1, "none.sqlite: No such file"),
    "folder": (["diagnose", "."], 1, "is a folder"),
    "text file": (["diagnose", "old.md"], 1, "old.md: a text file; diagnose reads captures"),
    "diagnose html": (["diagnose", "old.md", "-o", "x.html"], 2, "HTML reports are not built yet"),
    "report on a pipe": (
        ["plan", "--model", "tiny-26m", "--gpu", "t4", "-o", "pipe.md", "--force"],
        1,
        "-o pipe.md: is a pipe, not a regular file",
    ),
    "report on a pipe, run": (
        ["run", *SMALL, "-o", "pipe.md", "--force"],
        1,
        "-o pipe.md: is a pipe, not a regular file",
    ),
    "capture on a pipe": (
        ["run", *SMALL, "--capture", "pipe.md", "--force"],
        1,
        "--capture pipe.md: is a pipe, not a regular file",
    ),
    "doctor on a pipe": (["doctor", "-o", "pipe.md"], 1, "-o pipe.md: is a pipe"),
    "pipe": (["diagnose", "pipe.md"], 1, "pipe.md: is a pipe, not a regular file; - reads stdin"),
    "two devices": (["diagnose", "a", "--gpu", "t4", "--gpu-file", "b"], 2, "--gpu and --gpu-file"),
    "nothing to trace": (["nsys"], 2, "Missing argument 'CMD"),
    "no such program": (["nsys", "--", "none-such"], 2, "none-such: not on PATH; check the comm"),
    "no such script": (["nsys", "--", "./none.sh"], 2, "./none.sh: no such program"),
    "not a report": (["nsys", "--keep", "x.sqlite", "--", "ls"], 2, "give the report the suffix"),
    "one file for two": (
        ["nsys", "--capture", "a.json", "-o", "./a.json", "--", "ls"],
        2,
        "name one file; give each a file of its own",
    ),
    "half a second": (["nsys", "--duration", "0.5", "--", "ls"], 2, "'--duration'"),
    "report exists": (["nsys", "-o", "old.md", "--", "ls"], 2, "-o old.md: exists; add --force"),
    "unknown GPU": (["diagnose", "a", "--gpu", "a100"], 1, "a100-sxm4-40gb"),
}


@pytest.fixture
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A current folder with a few wrong files in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "old.md").write_text("old\n")
    os.mkfifo(tmp_path / "pipe.md")
    (tmp_path / "broken.json").write_text(CONFIG[:-1])
    (tmp_path / "partial.json").write_text(CONFIG.replace('"hidden_size": 64, ', ""))
    return tmp_path


@pytest.mark.parametrize("case", REFUSALS)
def test_refusal_is_one_line_and_leaves_nothing(
    case: str, workplace: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, code, complaint = REFUSALS[case]
    before = sorted(workplace.rglob("*"))
    assert call(arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert re.fullmatch(r"stallscope: [^\n]+\n", err)
    assert re.search(complaint, err)
    assert sorted(workplace.rglob("*")) == before
    assert (workplace / "old.md").read_text() == "old\n"


@pytest.mark.parametrize("case", ["unknown option", "html", "unknown preset", "missing file"])
def test_refusal_of_the_console_script(case: str, workplace: Path) -> None:
    arguments, code, complaint = REFUSALS[case]
    done = subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, cwd=workplace)
    assert (done.returncode, done.stdout) == (code, "")
    assert re.fullmatch(r"stallscope: [^\n]+\n", done.stderr)
    assert re.search(complaint, done.stderr)


def test_refused_stdin_goes_by_that_name(tmp_path: Path) -> None:
    done = subprocess.run([SCRIPT, "diagnose", "-"], capture_output=True, text=True, input="old\n")
    assert (done.returncode, done.stdout) == (1, "")
    assert re.match(r"stallscope: stdin: a text file; diagnose reads [^\n]+\n$", done.stderr)


def test_telemetry_is_read_from_stdin() -> None:
    rows = "timestamp, index, utilization.gpu [%]\n2026/01/03 15:36:53.507, 0, 0 %\n"
    done = subprocess.run([SCRIPT, "diagnose", "-"], capture_output=True, text=True, input=rows)
    assert done.returncode == 0
    assert done.stdout.startswith("Nothing limits this run: the GPU idled in 100 % of the samples;")


@pytest.mark.parametrize("command", [[SCRIPT], [sys.executable, "-m", "stallscope"]])
def test_alone_it_prints_the_three_most_common_commands(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    commands = re.findall(r"^  stallscope (\w+) ", done.stdout, flags=re.MULTILINE)
    assert commands == ["run", "diagnose", "plan"]


def test_version_is_printed() -> None:
    result = CliRunner().invoke(application(), ["--version"])
    assert (result.exit_code, result.stdout) == (0, f"stallscope {__version__}\n")


@pytest.mark.parametrize("command", ["run", "nsys", "attach", "diagnose", "plan", "doctor"])
def test_help_of_each_command(command: str) -> None:
    result = CliRunner().invoke(application(), [command, "--help"])
    assert result.exit_code == 0
    assert result.stdout.startswith(f"Usage: root {command} [OPTIONS]")


def test_reader_that_leaves_is_not_complained_about() -> None:
    done = subprocess.run(f"{SCRIPT} | true", shell=True, capture_output=True, text=True)
    assert done.stderr == ""


def test_ctrl_c_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    program = "import typer\n\n\ndef stop():\n    raise KeyboardInterrupt\n"
    script = (
        f"{program}\nfrom stallscope import app, plan_command\n"
        "plan_command.plan = stop\nraise SystemExit(app.call(['plan']))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (130, "stallscope: interrupted\n")


def test_defaults_of_run_are_those_of_its_options() -> None:
    import inspect

    from stallscope.run_command import run
    from stallscope.runner.options import RunOptions

    command = inspect.signature(run).parameters
    unlike = {"model", "capture", "eos"}  # required there; a tuple there, a list here
    for name, parameter in inspect.signature(RunOptions).parameters.items():
        if name not in unlike:
            assert command[name].default == parameter.default, name


def test_the_list_of_commands_says_what_each_command_says() -> None:
    """`--help` does not import the commands, so their first lines stand twice."""
    listed = CliRunner().invoke(application(()), ["--help"]).stdout
    for name, line in COMMANDS.items():
        whole = CliRunner().invoke(application((name,)), [name, "--help"]).stdout
        assert " ".join(line.split()) in " ".join(whole.split())
        assert f"  {name}" in listed
