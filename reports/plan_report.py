"""A plan in each format that a diagnosis has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from stallscope.analyzers.plan.result import FLOOR_ERROR, PhasePlan, Plan, PredictedLimit
from stallscope.reports.json_report import (
    SCHEMA,
    calibration_fields,
    dumped,
    sided_fields,
    subject_fields,
)
from stallscope.reports.markdown import render_sections as markdown_sections
from stallscope.reports.plan_sections import plan_sections
from stallscope.reports.terminal import render_sections as terminal_sections


def render_terminal(plan: Plan, *, width: int = 100, color: bool = False) -> str:
    """Return the plan as text."""
    return terminal_sections(plan_sections(plan), width=width, color=color)


def render_markdown(plan: Plan, *, version: str) -> str:
    """Return the plan as Markdown."""
    closing = f"stallscope {version}"
    return markdown_sections("stallscope plan", plan_sections(plan), {}, closing=closing)


def render_json(plan: Plan, *, version: str) -> str:
    """Return the plan as JSON, schema 1."""
    return dumped({"schema": SCHEMA, "tool": "stallscope", "version": version, **_fields(plan)})


def _fields(plan: Plan) -> Mapping[str, object]:
    fields = asdict(plan) | {"subject": subject_fields(plan.subject)}
    del fields["phases"], fields["limit"]
    fields["calibration"] = calibration_fields(plan.calibration)
    fields["verdict"] = None if plan.limit is None else _verdict(plan.limit)
    if plan.speculation is not None:
        more = {"tpot_s": plan.speculation.tpot_s, "speedup": plan.speculation.speedup}
        fields["speculation"] = asdict(plan.speculation) | more
    return fields | {phase.phase: _phase(phase) for phase in plan.phases}


def _verdict(limit: PredictedLimit) -> dict[str, object]:
    """Return it under the names that a diagnosis's verdict has."""
    fields = asdict(limit)
    return {"class": fields.pop("bottleneck"), "next": fields.pop("next_limit"), **fields}


def _phase(phase: PhasePlan) -> dict[str, object]:
    fields = asdict(phase) | {"error": None if phase.time_s is None else FLOOR_ERROR}
    fields["budget"] = [sided_fields(part) for part in phase.budget]
    del fields["phase"]
    return fields
