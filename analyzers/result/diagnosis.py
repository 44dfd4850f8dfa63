"""Everything a report shows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from stallscope.analyzers.explain.result import ExplainStep
from stallscope.analyzers.result.advice import Remedy, WontHelp
from stallscope.analyzers.result.fleet import Fleet, Replica
from stallscope.analyzers.result.kv import KvRow, LifeStage
from stallscope.analyzers.result.rules import DocumentVerdict, RuleResult
from stallscope.analyzers.result.series import Series
from stallscope.analyzers.result.source import CaptureInfo
from stallscope.analyzers.result.sweep import Sweep
from stallscope.analyzers.result.time import (
    Distribution,
    KernelRow,
    OperatorRow,
    PhaseBudget,
    Throughput,
)
from stallscope.analyzers.result.verdict import Verdict
from stallscope.analyzers.result.windows import Change, Window
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.evidence import Measure, NotObservable
from stallscope.profiler.spec import Calibration, Subject


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything a report shows."""

    version: str
    capture: CaptureInfo
    subject: Subject
    thresholds: Thresholds
    goal: str | None
    verdict: Verdict
    document: DocumentVerdict
    rules: tuple[RuleResult, ...]
    latency: Mapping[str, Distribution]  # ttft_s, tpot_s, itl_s, e2e_s, queue_s
    throughput: Throughput
    phases: tuple[PhaseBudget, ...]
    operators: tuple[OperatorRow, ...]
    kv_table: tuple[KvRow, ...]
    kv_life: tuple[LifeStage, ...]
    measures: tuple[Measure, ...]
    remedies: tuple[Remedy, ...]
    wont_help: tuple[WontHelp, ...]
    not_observable: tuple[NotObservable, ...]
    windows: tuple[Window, ...]
    notes: tuple[str, ...]  # capture checks, each a plain sentence
    warnings: tuple[str, ...] = ()  # stated facts that the capture contradicts, and were not used
    kernels: tuple[KernelRow, ...] = ()  # of a trace
    sweep: Sweep | None = None  # of a benchmark at several loads
    replicas: tuple[Replica, ...] = ()  # the most held first
    fleet: Fleet | None = None
    changes: tuple[Change, ...] = ()  # of what limits, over time
    series: Series = field(default_factory=Series)
    explain: tuple[ExplainStep, ...] = ()  # how the verdict was reached, in order
    fitted: Calibration | None = None  # by the capture's own steps; nothing here rests on it
