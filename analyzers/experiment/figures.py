"""A run of an experiment from its diagnosis: what it was set to, and how fast it was."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.experiment.result import Figure, Run, Value
from stallscope.analyzers.result import Diagnosis
from stallscope.profiler.spec import Subject

_RATES = ("output_tokens_per_s", "input_tokens_per_s", "requests_per_s")
_UNITS = {"requests_per_s": "requests/s"}
_NUMBERS = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "kv_budget_bytes",
    "concurrency",
    "rate_per_s",
)
_WORDS = ("dtype", "kv_dtype", "engine")
_SWITCHES = ("chunked_prefill", "static_batching")
# What a run itself states of how it was set.
STATED = frozenset({"model", "device", "gpus", *_NUMBERS, *_WORDS, *_SWITCHES})


def run_of(name: str, diagnosis: Diagnosis) -> Run:
    """Take from a diagnosis what can be set beside another's."""
    return Run(
        name=name,
        settings=dict(_settings(diagnosis.subject)),
        figures=dict(_figures(diagnosis)),
        bottleneck=diagnosis.verdict.bottleneck,
        load=diagnosis.verdict.load,
        sentence=diagnosis.verdict.sentence,
        notes=diagnosis.notes,
        cut_note=(diagnosis.capture.cut_note or "its end is missing")
        if diagnosis.capture.cut
        else None,
    )


def _settings(subject: Subject) -> Iterator[tuple[str, Value]]:
    if subject.model is not None:
        yield "model", subject.model.name
    if subject.device is not None:
        yield "device", subject.device.name
    yield "gpus", float(subject.num_devices)
    for name in _NUMBERS:
        value = getattr(subject, name)
        if value is not None:
            yield name, float(value)
    for name in _WORDS:
        value = getattr(subject, name)
        if value is not None:
            yield name, value
    for name in _SWITCHES:
        value = getattr(subject, name)
        if value is not None:
            yield name, "on" if value else "off"


def _figures(diagnosis: Diagnosis) -> Iterator[tuple[str, Figure]]:
    """Yield what is above zero: nothing can be said of the speed of a run that did nothing."""
    for name in _RATES:
        value = getattr(diagnosis.throughput, name)
        if value:
            unit = _UNITS.get(name, "tokens/s")
            yield name, Figure(value, unit, "derived", "over the run's span")
    for name, spread in diagnosis.latency.items():
        if spread.mean:
            yield name, Figure(spread.mean, "s", "measured", "mean over requests")
    for phase in diagnosis.phases:
        mean_s = phase.mean_step_s
        if phase.phase != "all" and mean_s:
            yield f"{phase.phase}_step_s", Figure(mean_s, "s", "measured", "mean over steps")
