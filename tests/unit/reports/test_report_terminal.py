"""The terminal report: whole, at other widths, in colour, and with hostile names."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from golden_text import golden, trimmed
from rich.cells import cell_len

from stallscope.analyzers.result import Diagnosis
from stallscope.reports import terminal
from stallscope.reports.blocks import Column, Section, Table
from stallscope.reports.sections import sections
from stallscope.reports.table_width import fits

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def test_whole_report(busy: Diagnosis) -> None:
    text = terminal.render(busy)
    assert trimmed(text) == golden("busy.txt", text)


def test_report_of_nothing(blind: Diagnosis) -> None:
    text = terminal.render(blind)
    assert trimmed(text) == golden("blind.txt", text)
    assert "nan" not in text
    assert "None" not in text


def test_the_answer_comes_first(busy: Diagnosis) -> None:
    lines = terminal.render(busy, width=400).splitlines()
    assert lines[0] == busy.verdict.sentence
    assert lines[2].split() == ["Verdict", "capacity,", "confidence", "86", "%"]


def test_isolated_phases_were_no_load(busy: Diagnosis) -> None:
    apart = replace(busy, subject=replace(busy.subject, isolated_phases=True))
    said = " ".join(terminal.render(apart).split())
    assert "Load none was served: phases were isolated; judged on" in said


@pytest.mark.parametrize("width", [40, 80, 100, 160])
def test_lines_fit_and_the_documents_line_is_whole(busy: Diagnosis, width: int) -> None:
    lines = terminal.render(busy, width=width).splitlines()
    assert busy.document.sentence in lines
    rest = [line for line in lines if line != busy.document.sentence]
    assert max(map(cell_len, rest)) <= max(width, terminal.NARROWEST)


def test_no_number_is_cut_at_the_narrowest(busy: Diagnosis) -> None:
    text = terminal.render(busy, width=1)
    tables = [b for s in sections(busy) for b in s.blocks if isinstance(b, Table)]
    numbers = [
        cell
        for table in tables
        for row in table.rows
        for column, cell in zip(table.columns, row, strict=True)
        if column.kind == "number"
    ]
    assert len(numbers) > 60
    assert [number for number in numbers if number not in text] == []


def test_foreign_text_is_shown_and_not_obeyed(busy: Diagnosis) -> None:
    text = terminal.render(busy, width=200)
    assert r"tiny[red]|`*_x_*`<b>&$1\x1b[31m next\u202e, weights fp32" in text
    assert r"runs/[bold]a|b\udcff.sqlite" in text
    assert not set("\x1b\u202e\udcff") & set(text)
    text.encode("utf-8")


def test_colour_changes_nothing_but_colour(busy: Diagnosis) -> None:
    coloured = terminal.render(busy, color=True)
    assert "\x1b[1m" in coloured
    without = [line.rstrip() for line in ANSI.sub("", coloured).splitlines()]
    assert without == terminal.render(busy).splitlines()


@pytest.mark.parametrize("name", ["FORCE_COLOR", "NO_COLOR", "TTY_COMPATIBLE", "COLUMNS"])
def test_the_environment_does_not_change_the_text(
    busy: Diagnosis, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    expected = terminal.render(busy)
    monkeypatch.setenv(name, "1")
    assert terminal.render(busy) == expected


def test_moved_thresholds_are_named_with_their_default(busy: Diagnosis) -> None:
    text = terminal.render(busy, width=1000)
    assert "near_limit 0.9 (default 0.95), sm_low 0.3, dram_high 0.8" in text


def test_a_table_too_wide_for_the_terminal_is_set_as_pairs_and_no_number_is_cut() -> None:
    """A word of 4 signs, 9 numbers of 9, and 3 between two columns: 4 + 9 * 9 + 9 * 3 = 112."""
    columns = (Column("Run"), *(Column(f"col{i}", "number") for i in range(9)))
    row = ("mine", *(f"1,234.{i} s" for i in range(9)))
    assert fits(Table(columns, (row,)), 112)
    assert not fits(Table(columns, (row,)), 111)
    text = terminal.render_sections([Section("Runs", (Table(columns, (row, row)),))], width=80)
    assert "  Run  mine\n  col0 1,234.0 s\n" in text
    assert all(text.count(f"1,234.{i} s") == 2 for i in range(9))
