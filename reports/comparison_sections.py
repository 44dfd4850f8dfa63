"""Compared runs as sections: the answer, the runs side by side, and what each group shows."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.experiment.result import Comparison, Figure, Group, Run, Value
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Cell, Column, Item, Items, Section, Table, Text, present

_MOST_FIGURES = 4  # of the columns that a terminal has room for; JSON has all


def comparison_sections(compared: Comparison) -> tuple[Section, ...]:
    """Return what a comparison has to tell, the answer first."""
    return present((_answer(compared), _side_by_side(compared), _shown(compared)))


def _answer(compared: Comparison) -> Section:
    conclusion = compared.conclusion
    blocks = [Text(conclusion.sentence, "strong")]
    if conclusion.confidence:
        blocks.append(
            Text(
                f"Verdict: {conclusion.bottleneck}, confidence "
                f"{fmt.rough_percent(conclusion.confidence)}."
            )
        )
    if conclusion.excluded:
        blocks.append(Text(f"Excluded: {', '.join(conclusion.excluded)}."))
    return Section("", tuple(blocks))


def _side_by_side(compared: Comparison) -> Section:
    settings = _settings(compared)
    figures = _figures(compared)
    has_verdicts = any(run.bottleneck for run in compared.runs)
    columns = (
        Column("Run"),
        *(Column(name) for name in settings),
        *(Column(name, "number") for name in figures),
        *((Column("Alone it says"),) if has_verdicts else ()),
    )
    first = compared.runs[0]
    rows = tuple(_row(run, first, settings, figures, has_verdicts) for run in compared.runs)
    seen = ", ".join(dict.fromkeys(name for run in compared.runs for name in run.readings))
    told = f"Seen while they ran, and set by nobody, so they tell no runs apart: {seen}."
    cut = tuple(
        Text(f"{run.name}: {run.cut_note}; its figures tell of the part before.")
        for run in compared.runs
        if run.cut_note
    )
    return Section(
        "Side by side", (Table(columns, rows), *cut, Text(told if seen else "", "quiet"))
    )


def _settings(compared: Comparison) -> tuple[str, ...]:
    """Name the settings that tell the runs apart, the one that was varied first."""
    found = [compared.vary] if compared.vary else []
    return tuple(dict.fromkeys([*found, *compared.apart]))


def _figures(compared: Comparison) -> tuple[str, ...]:
    names = [compared.metric] if compared.metric else []
    names += [n for n in compared.runs[0].figures if all(n in r.figures for r in compared.runs)]
    return tuple(dict.fromkeys(names))[:_MOST_FIGURES]


def _row(
    run: Run, first: Run, settings: Sequence[str], figures: Sequence[str], has_verdicts: bool
) -> tuple[Cell, ...]:
    verdict = f"{run.bottleneck} ({run.load})" if run.bottleneck else ""
    return (
        run.name,
        *(spelled(run.settings.get(name)) for name in settings),
        *(_figure(run.figures.get(name), first.figures.get(name)) for name in figures),
        *((verdict,) if has_verdicts else ()),
    )


def spelled(value: Value | None) -> str:
    """Write a setting's value; one that a run does not state is empty."""
    if value is None:
        return ""
    return fmt.number(value) if isinstance(value, float) else value


def _figure(figure: Figure | None, first: Figure | None) -> Cell:
    if figure is None:
        return ""
    text = fmt.quantity(figure.value, figure.unit)
    text = f"under {text}" if figure.provenance == "bound" else text
    if first is None or first is figure:
        return text
    return (text, f"{figure.value / first.value:.2f} ×")


def _shown(compared: Comparison) -> Section:
    if not compared.findings:
        return Section("", ())
    items = tuple(
        Item(_capital(finding.says) + ".", _details(group, compared))
        for group, finding in zip(compared.groups, compared.findings, strict=True)
    )
    quiet = f"By {compared.metric}, worked out as docs/compare.md says."
    return Section(f"What follows {compared.vary}", (Items(items), Text(quiet, "quiet")))


def _details(group: Group, compared: Comparison) -> tuple[str, ...]:
    figure = next(
        r.figures[compared.metric or ""] for r in compared.runs if compared.metric in r.figures
    )
    values = ", ".join(
        f"{spelled(value)}: {fmt.quantity(shown, figure.unit)}"
        for value, shown in zip(group.values, group.shown, strict=True)
    )
    return (f"Where {group.label}", values) if group.label else (values,)


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
