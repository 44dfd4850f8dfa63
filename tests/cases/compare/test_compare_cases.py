"""Reports of several runs as their reporters had them: the established class, not the easy one."""

from __future__ import annotations

import csv
import io
import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from stallscope.app import call
from stallscope.profiler.run_cells import figure_of, is_reading

HERE = Path(__file__).parent
CASES: dict[str, dict[str, Any]] = tomllib.loads((HERE / "cases.toml").read_text())
each = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


def rows_of(text: str) -> list[list[str]]:
    if not text.startswith("|"):
        return list(csv.reader(text.splitlines()))
    rows = [[c.strip() for c in line.strip()[1:-1].split("|")] for line in text.splitlines()]
    return [row for row in rows if not all(re.fullmatch(":?-+:?", cell) for cell in row)]


def written(rows: list[list[str]]) -> str:
    text = io.StringIO()
    csv.writer(text).writerows(rows)
    return text.getvalue()


def judged(
    case: dict[str, Any],
    rows: list[list[str]] | None,
    folder: Path,
    capsys: pytest.CaptureFixture[str],
) -> dict[str, Any]:
    path = HERE / case["file"]
    if rows is not None:
        path = folder / "runs.csv"
        path.write_text(written(rows))
    assert call(["compare", str(path), "--vary", case["vary"], "--format", "json"]) == 0
    verdict: dict[str, Any] = json.loads(capsys.readouterr().out)["verdict"]
    return verdict


def check(verdict: dict[str, Any], case: dict[str, Any]) -> None:
    assert verdict["class"] in case["accept"], verdict["sentence"]
    assert verdict["class"] not in case["wrong"]
    assert not set(verdict["between"]) & set(case["wrong"])
    if verdict["class"] == "undetermined":
        assert verdict["confidence"] == 0
    else:
        assert verdict["confidence"] >= 0.4


@each
def test_as_reported(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    check(judged(case, None, tmp_path, capsys), case)


@each
def test_with_names_changed(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (HERE / case["file"]).read_text()
    for old, new in case["renamed"].items():
        assert old in text
        text = text.replace(old, new)
    check(judged(case, rows_of(text), tmp_path, capsys), case)


@each
def test_with_every_figure_larger_by_the_same(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    titles, *rows = rows_of((HERE / case["file"]).read_text())
    figures = [i for i, t in enumerate(titles) if figure_of(t) and not is_reading(t)]
    assert figures
    for row in rows:
        for i in figures:
            row[i] = re.sub(r"[\d.]+", lambda found: str(float(found[0]) * 1.3), row[i])
    first = judged(case, None, tmp_path, capsys)
    second = judged(case, [titles, *rows], tmp_path, capsys)
    check(second, case)
    assert second["confidence"] == pytest.approx(first["confidence"])


@each
def test_without_what_distracts(
    case: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    titles, *rows = rows_of((HERE / case["file"]).read_text())
    assert set(case["distractors"]) <= set(titles)
    kept = [i for i, title in enumerate(titles) if title not in case["distractors"]]
    fewer = [[row[i] for i in kept] for row in (titles, *rows)]
    check(judged(case, fewer, tmp_path, capsys), case)


def test_the_network_that_was_doubled_is_excluded(capsys: pytest.CaptureFixture[str]) -> None:
    path = HERE / "R47.csv"
    assert call(["compare", str(path), "--vary", "network_gbps", "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["verdict"]["excluded"] == ["interconnect"]


def test_every_file_is_a_case() -> None:
    files = {path.name for path in HERE.iterdir() if re.match(r"R\d+\.", path.name)}
    assert files == {case["file"] for case in CASES.values()}
    assert len(CASES) == 12
