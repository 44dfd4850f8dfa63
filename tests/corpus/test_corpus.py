"""Real captures of kernels: each loads or is refused as its label says, and most verdicts agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from derivation import faults
from judged import (
    Label,
    agrees,
    expects_choice,
    expects_class,
    is_first,
    labels,
    outcome,
    share,
)
from page import PAGE, tables, written

ROWS = labels()
LEAST_AGREEMENT, LEAST_FIRST = 0.95, 0.70


@pytest.mark.parametrize("label", ROWS, ids=lambda label: label.file)
def test_file_loads_or_is_refused_in_one_line(label: Label, corpus: Path) -> None:
    seen = outcome(label)
    assert "Traceback" not in seen.said
    if label.loads == "yes":
        assert (seen.code, seen.verdict is not None) == (0, True), seen.said
    elif seen.verdict is None:
        assert seen.code in (1, 3)  # 3: there is no nsys here to open its own report
        assert re.fullmatch(r"stallscope: [^\n]+\n", seen.said)
    if label.loads.startswith("refused:"):
        assert seen.verdict is None
        version = re.search(rb"Report (\d+)@(\d+)@(\d+)", (corpus / label.file).read_bytes()[:60])
        assert version is not None
        assert ".".join(part.decode() for part in version.groups()) in seen.said


@pytest.mark.parametrize("label", ROWS, ids=lambda label: label.file)
def test_its_derivation_can_be_checked_by_hand(label: Label, corpus: Path) -> None:
    report = outcome(label).report
    assert not report or faults(report) == []


def test_most_verdicts_agree(corpus: Path) -> None:
    print("\n" + tables(ROWS))
    judged = [row for row in ROWS if expects_class(row)]
    chosen = [row for row in ROWS if expects_choice(row)]
    assert len(judged) >= 20
    assert len(chosen) >= 12
    other = {row.file: outcome(row).verdict for row in judged if not agrees(row)}
    assert share(map(agrees, judged)) >= LEAST_AGREEMENT, other
    later = {row.file: outcome(row).verdict for row in chosen if not is_first(row)}
    assert share(map(is_first, chosen)) >= LEAST_FIRST, later


def test_the_page_shows_these_figures_and_argues_what_differs(corpus: Path) -> None:
    assert written() == tables(ROWS), "run: python tests/corpus/page.py --write"
    argued = PAGE.read_text(encoding="utf-8").split("## What differs, and why")[1]
    for row in ROWS:
        differs = expects_class(row) and not agrees(row)
        if differs or (expects_choice(row) and not is_first(row)):
            assert Path(row.file).name in argued
