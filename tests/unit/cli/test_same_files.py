"""What a command reads is never written over by it, whatever --force allows."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.app import call

OVER = [
    ("diagnose {a} -o {a} --format json", "-o {a}"),
    ("diagnose {a} -o {link} --format json", "-o {link}"),
    ("diagnose {a} {b} -o {b} --format text", "-o {b}"),
    ("diagnose {a} --thresholds {b} -o {b} --format text", "-o {b}"),
    ("diagnose {a} --gpu-file {b} -o {b} --format text", "-o {b}"),
    ("diagnose {a} --model {folder} -o {folder}/config.json", "-o {folder}/config.json"),
    ("compare {a} {b} -o {a} --format text", "-o {a}"),
    ("plan --model {b} --gpu a10g -o {link} --format text", None),
    ("plan --model {a} --gpu a10g -o {link} --format text", "-o {link}"),
    ("plan --model tiny-26m --gpu-file {a} -o {a} --format text", "-o {a}"),
    ("plan --model tiny-26m --gpu a10g --calibrate {a} --write-gpu-file {a}", "--write-gpu-file"),
    ("run --trace {a} --rate 1 --capture {a}", "--capture {a}"),
    ("attach http://127.0.0.1:9 --thresholds {a} --capture {a}", "--capture {a}"),
    ("nsys --gpu-file {a} --capture {a} -- true", "--capture {a}"),
]


@pytest.mark.parametrize(("line", "refused"), OVER)
def test_what_is_read_is_left_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], line: str, refused: str | None
) -> None:
    paths = {name: tmp_path / name for name in ("a", "b", "link", "folder")}
    for name in ("a", "b"):
        paths[name].write_text(f"{name}: kept")
    paths["link"].symlink_to(paths["a"])
    paths["folder"].mkdir()
    (paths["folder"] / "config.json").write_text("kept")
    command, _, behind = line.format(**paths).partition(" -- ")
    given = [*command.split(), "--force", *(["--", *behind.split()] if behind else [])]
    code = call(given)
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.count("\n") == 1
    if refused is None:  # {b} is read, and {link} leads to {a}: refused for what {b} holds
        assert code == 1
        assert "is read" not in said.err
    else:
        assert code == 2
        assert refused.format(**paths) in said.err
        assert "is read" in said.err
    assert paths["a"].read_text() == "a: kept"
    assert paths["b"].read_text() == "b: kept"
    assert (paths["folder"] / "config.json").read_text() == "kept"


def test_a_device_file_may_be_brought_up_to_date(tmp_path: Path) -> None:
    """A calibration goes where its device is described."""
    file = tmp_path / "mine.json"
    file.write_text("{}")
    line = f"plan --model tiny-26m --gpu-file {file} --calibrate none --write-gpu-file {file}"
    assert call([*line.split(), "--force"]) == 1  # for what the file lacks
