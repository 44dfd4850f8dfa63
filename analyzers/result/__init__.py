"""What a diagnosis is: plain data that reports format and never compute on."""

from __future__ import annotations

from stallscope.analyzers.result.advice import Gain, Remedy, WontHelp
from stallscope.analyzers.result.diagnosis import Diagnosis
from stallscope.analyzers.result.fleet import Fleet, Replica
from stallscope.analyzers.result.kv import KvRow, LifeStage
from stallscope.analyzers.result.rules import DocumentVerdict, RuleResult
from stallscope.analyzers.result.series import Roofline, RooflinePoint, Series, StepPoint
from stallscope.analyzers.result.source import CaptureInfo, SourceInfo
from stallscope.analyzers.result.sweep import Sweep, SweepRow
from stallscope.analyzers.result.time import (
    BudgetPart,
    Distribution,
    KernelRow,
    OperatorRow,
    PhaseBudget,
    Throughput,
)
from stallscope.analyzers.result.verdict import Grounds, Limits, Link, Verdict
from stallscope.analyzers.result.windows import (
    Change,
    Figure,
    PhaseWindow,
    State,
    Window,
)

__all__ = [
    "BudgetPart",
    "CaptureInfo",
    "Change",
    "Diagnosis",
    "Distribution",
    "DocumentVerdict",
    "Figure",
    "Fleet",
    "Gain",
    "Grounds",
    "KernelRow",
    "KvRow",
    "LifeStage",
    "Limits",
    "Link",
    "OperatorRow",
    "PhaseBudget",
    "PhaseWindow",
    "Remedy",
    "Replica",
    "Roofline",
    "RooflinePoint",
    "RuleResult",
    "Series",
    "SourceInfo",
    "State",
    "StepPoint",
    "Sweep",
    "SweepRow",
    "Throughput",
    "Verdict",
    "Window",
    "WontHelp",
]
