"""Compared runs in each format that a diagnosis has."""

from __future__ import annotations

from dataclasses import asdict

from stallscope.analyzers.experiment.result import Comparison, Run
from stallscope.reports.comparison_sections import comparison_sections
from stallscope.reports.json_report import SCHEMA, dumped
from stallscope.reports.markdown import render_sections as markdown_sections
from stallscope.reports.terminal import render_sections as terminal_sections


def render_terminal(compared: Comparison, *, width: int = 100, color: bool = False) -> str:
    """Return the comparison as text."""
    return terminal_sections(comparison_sections(compared), width=width, color=color)


def render_markdown(compared: Comparison) -> str:
    """Return the comparison as Markdown."""
    closing = f"stallscope {compared.version}"
    return markdown_sections(
        "stallscope compare", comparison_sections(compared), {}, closing=closing
    )


def render_json(compared: Comparison) -> str:
    """Return the comparison as JSON, schema 1."""
    conclusion = compared.conclusion
    return dumped(
        {
            "schema": SCHEMA,
            "tool": "stallscope",
            "version": compared.version,
            "vary": compared.vary,
            "metric": compared.metric,
            "verdict": {
                "class": conclusion.bottleneck,
                "confidence": conclusion.confidence,
                "between": conclusion.between,
                "excluded": conclusion.excluded,
                "sentence": conclusion.sentence,
            },
            "findings": [
                {"group": g.label, "values": g.values, "figures": g.shown, **_finding(asdict(f))}
                for g, f in zip(compared.groups, compared.findings, strict=True)
            ],
            "runs": [_run(run) for run in compared.runs],
        }
    )


def _finding(fields: dict[str, object]) -> dict[str, object]:
    del fields["group"]
    fields["class"] = fields.pop("bottleneck")
    return fields


def _run(run: Run) -> dict[str, object]:
    return {
        "name": run.name,
        "settings": run.settings,
        "figures": {name: asdict(figure) for name, figure in run.figures.items()},
        "readings": run.readings,
        "class": run.bottleneck,
        "load": run.load,
        "sentence": run.sentence,
        "notes": run.notes,
    }
