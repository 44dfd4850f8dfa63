"""Runs side by side: one that was cut says so."""

from __future__ import annotations

from stallscope.analyzers.experiment.compare import compare
from stallscope.analyzers.experiment.result import Figure, Run
from stallscope.reports.comparison_report import render_markdown, render_terminal

NOTE = "cut 11.6 s after its first row: the run did not end"


def run(name: str, bytes_: float, cut_note: str | None = None) -> Run:
    figures = {"output_tokens_per_s": Figure(100.0, "tokens/s", "derived", "over the run's span")}
    return Run(
        name, {"kv_budget_bytes": bytes_}, figures, "capacity", "overloaded", cut_note=cut_note
    )


def test_a_cut_run_is_named() -> None:
    runs = (run("whole.sqlite", 8e6), run("killed.sqlite", 31_457_280.0, NOTE))
    compared = compare(runs, vary="kv_budget_bytes", metric=None, version="1")
    told = f"killed.sqlite: {NOTE}; its figures tell of the part before."
    for width in (80, 100):
        text = render_terminal(compared, width=width, color=False)
        assert told in " ".join(text.split())
        assert "whole.sqlite: cut" not in text
    assert "the run did not end" in render_markdown(compared)


def test_no_whole_run_is_called_cut() -> None:
    compared = compare((run("a", 1e6), run("b", 2e6)), vary=None, metric=None, version="1")
    assert "the part before" not in render_terminal(compared, width=100, color=False)
