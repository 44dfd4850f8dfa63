"""The order in which a report tells a diagnosis, the same in every format for people."""

from __future__ import annotations

from stallscope.analyzers.result import Diagnosis
from stallscope.reports import (
    advice_sections,
    budget_section,
    evidence_sections,
    explain_sections,
    fleet_sections,
    kernel_sections,
    kv_sections,
    over_time_section,
    sweep_sections,
    time_sections,
    verdict_sections,
)
from stallscope.reports.blocks import Section, present

# The answer and what to do come first, then where the time went, then the evidence.
_ORDER = (
    verdict_sections.verdict,
    sweep_sections.sweep,
    fleet_sections.replicas,
    verdict_sections.rules,
    explain_sections.derivation,
    advice_sections.chain,
    advice_sections.remedies,
    advice_sections.wont_help,
    evidence_sections.notes,
    budget_section.budget,
    time_sections.phases,
    time_sections.latency,
    over_time_section.over_time,
    kernel_sections.kernels,
    time_sections.operators,
    kv_sections.growth,
    kv_sections.life,
    advice_sections.not_observable,
    evidence_sections.measures,
    evidence_sections.thresholds,
)


_OF_NOTHING = (verdict_sections.nothing, evidence_sections.notes)


def sections(diagnosis: Diagnosis) -> tuple[Section, ...]:
    """Return the report's sections; one without content is left out."""
    order = _OF_NOTHING if diagnosis.capture.empty else _ORDER
    return present([tell(diagnosis) for tell in order])
