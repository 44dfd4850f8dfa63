"""Real captures of kernels: each loads or is refused as its label says, and most verdicts agree."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from derivation import faults
from fit import fit, seen
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
from page import PAGE, surest, tables, written

from stallscope.analyzers.confidence_map import CLASS_KNOTS, UNDETERMINED_KNOTS, interpolate

ROWS = labels()
LEAST_AGREEMENT, LEAST_FIRST = 0.97, 0.75
MOST_WRONG, LEAST_SURE = 0.02, 0.50  # of the sure verdicts; of those that are right
DRIFT = 0.05  # by which a fit to today's verdicts may differ from the map in use


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


def test_sure_verdicts_are_right_and_half_of_the_right_are_sure(corpus: Path) -> None:
    judged = [row for row in ROWS if expects_class(row)]
    said = [(agrees(row), outcome(row).confidence or 0.0) for row in judged]
    sure, wrong, part = surest(said)
    assert wrong <= MOST_WRONG * sure, (wrong, sure)
    assert part >= LEAST_SURE


def test_the_map_of_confidence_fits_these_captures(corpus: Path) -> None:
    for used, found in zip((CLASS_KNOTS, UNDETERMINED_KNOTS), fit(seen(ROWS)), strict=True):
        for at in (0.0, 0.2, 0.33, 0.5, 0.6, 0.7, 0.85, 1.0):
            drift = abs(interpolate(used, at) - interpolate(found, at))
            assert drift <= DRIFT, f"at {at}: fitted anew {found}; run: python tests/corpus/fit.py"


def test_the_page_shows_these_figures_and_argues_what_differs(corpus: Path) -> None:
    assert written() == tables(ROWS), "run: python tests/corpus/page.py --write"
    argued = PAGE.read_text(encoding="utf-8").split("## What differs, and why")[1]
    for row in ROWS:
        differs = expects_class(row) and not agrees(row)
        if differs or (expects_choice(row) and not is_first(row)):
            assert Path(row.file).name in argued
