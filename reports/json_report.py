"""A report as JSON, schema 1: raw SI values under names that scripts can rely on."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict

from stallscope.analyzers.explain.result import ExplainStep, Term
from stallscope.analyzers.result import (
    BudgetPart,
    Diagnosis,
    Gain,
    PhaseBudget,
    Remedy,
    Replica,
    RuleResult,
    Sweep,
)
from stallscope.profiler.evidence import Measure
from stallscope.profiler.spec import Calibration, Subject
from stallscope.reports.json_over_time import change_fields, window_fields

SCHEMA = 1


def render(diagnosis: Diagnosis) -> str:
    """Return the report; a number that is not finite is null."""
    return dumped(_report(diagnosis))


def dumped(report: Mapping[str, object]) -> str:
    """Return fields as JSON text; a number that is not finite is null."""
    return json.dumps(_finite(report), indent=2, allow_nan=False) + "\n"


def _report(diagnosis: Diagnosis) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "tool": "stallscope",
        "version": diagnosis.version,
        "capture": asdict(diagnosis.capture),
        "subject": subject_fields(diagnosis.subject),
        "thresholds": asdict(diagnosis.thresholds),
        "goal": diagnosis.goal,
        "verdict": _verdict(diagnosis),
        "document": asdict(diagnosis.document),
        "rules": [_rule(rule) for rule in diagnosis.rules],
        "latency": {name: asdict(spread) for name, spread in diagnosis.latency.items()},
        "throughput": asdict(diagnosis.throughput),
        "phases": [_phase(phase) for phase in diagnosis.phases],
        "operators": [asdict(row) for row in diagnosis.operators],
        "kernels": [asdict(row) for row in diagnosis.kernels],
        "kv_table": [asdict(row) for row in diagnosis.kv_table],
        "kv_life": [asdict(stage) for stage in diagnosis.kv_life],
        "measures": [sided_fields(measure) for measure in diagnosis.measures],
        "remedies": [_remedy(remedy) for remedy in diagnosis.remedies],
        "wont_help": [asdict(fix) for fix in diagnosis.wont_help],
        "not_observable": [asdict(missing) for missing in diagnosis.not_observable],
        "replicas": [_replica(replica) for replica in diagnosis.replicas],
        "fleet": asdict(diagnosis.fleet) if diagnosis.fleet else None,
        "windows": [window_fields(window) for window in diagnosis.windows],
        "changes": [change_fields(change) for change in diagnosis.changes],
        "sweep": _sweep(diagnosis.sweep) if diagnosis.sweep else None,
        "notes": diagnosis.notes,
        "warnings": diagnosis.warnings,
        "calibration": _calibration(diagnosis),
        **({"explain": _explain(diagnosis.explain)} if diagnosis.explain else {}),
    }


def _explain(steps: Sequence[ExplainStep]) -> list[dict[str, object]]:
    return [
        {**asdict(step), "terms": [sided_fields(term) for term in step.terms]} for step in steps
    ]


def subject_fields(subject: Subject) -> dict[str, object]:
    """Return what was observed, by the names of the schema."""
    return {
        "model": subject.model.name if subject.model else None,
        "device": subject.device.name if subject.device else None,
        "devices": subject.num_devices,
        "dtype": subject.dtype,
        "kv_dtype": subject.kv_dtype,
        "engine": subject.engine,
        "workload": subject.workload,
    }


def calibration_fields(fitted: Calibration | None) -> dict[str, object] | None:
    """Return a calibration, and whether its error is of what the fit left out."""
    return None if fitted is None else {**asdict(fitted), "tested": fitted.is_tested}


def _calibration(diagnosis: Diagnosis) -> dict[str, object] | None:
    """Return what the device brought along, and what the run's own steps taught."""
    device = diagnosis.subject.device
    used = None if device is None else device.calibration
    if used is None and diagnosis.fitted is None:
        return None
    return {"used": calibration_fields(used), "fitted": calibration_fields(diagnosis.fitted)}


def _verdict(diagnosis: Diagnosis) -> dict[str, object]:
    verdict = diagnosis.verdict
    return {
        "class": verdict.bottleneck,
        "finding": verdict.finding,
        "confidence": verdict.confidence,
        "confidence_from": asdict(verdict.grounds) if verdict.grounds else None,
        "load": verdict.load,
        "load_seen": verdict.is_load_seen,
        "phase": verdict.phase,
        "between": verdict.between,
        "next": verdict.next_limit,
        "limits": asdict(verdict.limits),
        "sentence": verdict.sentence,
        "chain": [asdict(link) for link in verdict.chain],
    }


def _rule(rule: RuleResult) -> dict[str, object]:
    return {
        "id": rule.id,
        "text": rule.text,
        "status": rule.status,
        "reason": rule.reason,
        "measures": [sided_fields(measure) for measure in rule.measures],
    }


def _phase(phase: PhaseBudget) -> dict[str, object]:
    return {
        "phase": phase.phase,
        "count": phase.count,
        "time_s": phase.time_s,
        "share": phase.share,
        "mean_step_s": phase.mean_step_s,
        "class": phase.bottleneck,
        "budget": [sided_fields(part) for part in phase.budget],
    }


def sided_fields(number: Measure | BudgetPart | Term) -> dict[str, object]:
    """Return a number's fields; only a bound has a side."""
    fields = asdict(number)
    side = fields.pop("side")
    return {**fields, "side": side} if side else fields


def _remedy(remedy: Remedy) -> dict[str, object]:
    return {
        "action": remedy.action,
        "flag": dict(remedy.flag),
        "gain": _gain(remedy.gain) if remedy.gain else None,
        "cost": remedy.cost or None,
        "check": remedy.check,
        "evidence": remedy.evidence,
    }


def _gain(gain: Gain) -> dict[str, object]:
    return {
        "metric": gain.metric,
        "unit": gain.unit,
        "from": gain.before,
        "to": gain.after,
        "error": gain.error,
    }


def _sweep(sweep: Sweep) -> dict[str, object]:
    fields = asdict(sweep)
    for row in fields["rows"]:
        row["class"] = row.pop("bottleneck")
    return fields


def _replica(replica: Replica) -> dict[str, object]:
    fields = asdict(replica)
    return {"replica": fields.pop("replica"), "class": fields.pop("bottleneck"), **fields}


def _finite(value: object) -> object:
    """Return `value` with every NaN and infinity in it replaced by None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [_finite(item) for item in value]
    return value
