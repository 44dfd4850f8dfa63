"""Public reports whose cause is known, each as its reporter had it, and told in other ways."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from case_form import VERSIONS, Case, Version
from case_gpus import GPUS
from case_loads import LOADS
from case_starts import STARTS
from case_tools import TOOLS
from case_traces import TRACES
from derivation import faults

from stallscope.analyzers.classes import CLASSES
from stallscope.app import call

CASES = (*STARTS, *LOADS, *GPUS, *TRACES, *TOOLS)


def report(case: Case, version: Version, folder: Path) -> dict[str, Any]:
    out = folder / "report.json"
    given = case.build(folder, version)
    assert call(["diagnose", *given, "--explain", "-o", str(out), "--force"]) == 0
    found: dict[str, Any] = json.loads(out.read_text())
    return found


def told() -> Iterator[Any]:
    """Yield each case in each version; what is not right yet must fail, for the reason given."""
    for case in CASES:
        for name in VERSIONS:
            why = case.open.get(name)
            marks = () if why is None else (pytest.mark.xfail(reason=why, strict=True),)
            yield pytest.param(case, name, marks=marks, id=f"{case.name}-{name}")


@pytest.mark.parametrize(("case", "version"), list(told()))
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
