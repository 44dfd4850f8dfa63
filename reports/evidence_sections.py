"""What the verdict rests on: notes on the capture, every measure, the thresholds."""

from __future__ import annotations

from dataclasses import fields

from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.thresholds import Thresholds
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Column, Item, Items, Section, Table, Text

_MEASURES = (
    Column("Measure"),
    Column("Value", "number"),
    Column("Evidence"),
    Column("Source", "quiet"),
)


def notes(diagnosis: Diagnosis) -> Section:
    """What is wrong with the capture, or worth knowing before its numbers are believed."""
    return Section("Read with care", (Items(tuple(Item(note) for note in diagnosis.notes)),))


def measures(diagnosis: Diagnosis) -> Section:
    """All numbers of evidence, with provenance and source."""
    rows = tuple(
        (m.name, fmt.quantity(m.value, m.unit), fmt.provenance(m.provenance, m.side), m.source)
        for m in diagnosis.measures
    )
    return Section("Measures", (Table(_MEASURES, rows),))


def thresholds(diagnosis: Diagnosis) -> Section:
    """The lines that were compared with; a moved one is named with its default."""
    said = ", ".join(_threshold(diagnosis.thresholds, f.name) for f in fields(Thresholds))
    return Section("Thresholds", (Text(said),))


def _threshold(thresholds: Thresholds, name: str) -> str:
    value, default = getattr(thresholds, name), getattr(Thresholds(), name)
    moved = "" if value == default else f" (default {default:g})"
    return f"{name} {value:g}{moved}"
