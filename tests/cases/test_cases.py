"""Public reports whose cause is known, each as its reporter had it, and told in other ways."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from case_form import VERSIONS, Case, Version
from case_gpus import TABLES
from case_loads import LOADS, SWEEP, sweep
from case_records import RECORDS
from case_starts import STARTS
from case_tools import TOOLS
from case_traces import TRACES
from derivation import faults

from stallscope.analyzers.classes import CLASSES
from stallscope.app import call

CASES = (*STARTS, *LOADS, *TABLES, *RECORDS, *TRACES, *TOOLS)


def report(case: Case, version: Version, folder: Path) -> dict[str, Any]:
    out = folder / "report.json"
    given = case.build(folder, version)
    assert call(["diagnose", *given, "--explain", "-o", str(out), "--force"]) == 0
    found: dict[str, Any] = json.loads(out.read_text())
    return found


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_the_cause_is_found(case: Case, version: str, tmp_path: Path) -> None:
    found = report(case, VERSIONS[version], tmp_path)
    verdict = found["verdict"]
    assert faults(found) == []
    assert verdict["class"] in case.accept, verdict["sentence"]
    text = json.dumps(found, ensure_ascii=False)
    missing = [pattern for pattern in case.says if not re.search(pattern, text)]
    assert not missing, verdict["sentence"]
    advice = f"{verdict['sentence']} {json.dumps(found['remedies'], ensure_ascii=False)}"
    assert not [pattern for pattern in case.never if re.search(pattern, advice)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_no_input_names_a_class(case: Case, tmp_path: Path) -> None:
    case.build(tmp_path, Version())
    words = "|".join(set(CLASSES) - {"none"})
    for path in tmp_path.iterdir():
        if path.suffix == ".sqlite" or path.name == "config.json":
            continue
        # What torch and ncu print themselves holds two of the words.
        told = re.sub(r"total capacity of|on the target device", "", path.read_text())
        assert re.search(rf"\b(?:{words})\b", told) is None, path


def judged(given: list[str], capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    assert call(["diagnose", *given, "--format", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_a_pool_that_is_nearly_full_is_not_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """At 79 and 92 % every request fits to its end: nothing says that room is short."""
    log = tmp_path / "server.log"
    log.write_text(sweep(SWEEP[:2]))
    assert judged([str(log)], capsys)["verdict"]["class"] == "undetermined"


def test_a_cap_on_power_alone_tells_what_it_does_not_slow(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the tokens of the run nothing shows that decode reads memory."""
    (case,) = [case for case in RECORDS if case.name == "capped-power"]
    found = judged(case.build(tmp_path, Version())[:1], capsys)
    assert found["verdict"]["class"] == "undetermined"
    assert any("not what reads memory (decode)" in note for note in found["notes"])


def test_clients_in_front_of_a_frontend_with_time_left_are_not_settled(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (case,) = [case for case in TOOLS if case.name == "images-in-front"]
    given = case.build(tmp_path, Version(has_distractor=False))
    pages = Path(given[0])
    kept = [x for x in pages.read_text().splitlines(True) if not x.startswith("process_cpu")]
    pages.write_text("".join(kept))
    verdict = judged(given, capsys)["verdict"]
    assert (verdict["class"], verdict["between"]) == ("undetermined", ["host", "client"])
