"""Where the time of a step went, part by part, and how each part was found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stallscope.analyzers.result import BudgetPart, Diagnosis, PhaseBudget
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Bar, Cell, Column, Section, Table, Text


def budget(diagnosis: Diagnosis) -> Section:
    """One table of bars for each phase whose steps could be explained."""
    phases = [phase for phase in diagnosis.phases if phase.budget]
    return Section(
        "Where a step's time goes",
        (*(_bars(phase) for phase in phases), Text(_part_sources(phases), "quiet")),
    )


def _bars(phase: PhaseBudget) -> Table:
    columns = (
        Column(""),
        Column(""),
        Column("", "number"),
        Column("", "number"),
        Column("", "quiet"),
    )
    rows = tuple(_bar_row(part, phase) for part in phase.budget if part.time_s != 0)
    empty = [part for part in phase.budget if part.time_s == 0]
    nothing = ", ".join(part.part for part in empty if part.side is None)
    unseen = ", ".join(part.part for part in empty if part.side is not None)
    caption = f"{phase.phase}: {fmt.seconds(phase.mean_step_s)} a step"
    caption += f"; nothing in {nothing}" if nothing else ""
    caption += f"; not observed: {unseen}" if unseen else ""
    return Table(columns, rows, caption=caption)


def _bar_row(part: BudgetPart, phase: PhaseBudget) -> tuple[Cell, ...]:
    return (
        part.part,
        Bar(part.share),
        fmt.percent(part.share),
        fmt.seconds(part.share * phase.mean_step_s),
        fmt.provenance(part.provenance, part.side),
    )


def _part_sources(phases: Sequence[PhaseBudget]) -> str:
    found: dict[str, dict[str, list[str]]] = {}
    for phase in phases:
        for p in phase.budget:
            if p.time_s and p.source:
                found.setdefault(p.part, {}).setdefault(p.source, []).append(phase.phase)
    told = "; ".join(_by_phase(part, sources) for part, sources in found.items())
    return f"How each part was found. {told}." if told else ""


def _by_phase(part: str, sources: Mapping[str, Sequence[str]]) -> str:
    """Say how a part was found, phase by phase where that differs."""
    if len(sources) == 1:
        return f"{part}: {next(iter(sources))}"
    return "; ".join(f"{part} ({', '.join(of)}): {source}" for source, of in sources.items())
