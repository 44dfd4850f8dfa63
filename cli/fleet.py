"""Replicas judged one by one, and told as a fleet."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stallscope.analyzers.result import Diagnosis
    from stallscope.analyzers.thresholds import Thresholds
    from stallscope.profiler.capture import Capture

Judge = Callable[["Capture"], "Diagnosis"]


def with_engines(diagnosis: Diagnosis, engines: Mapping[str, Capture], judge: Judge) -> Diagnosis:
    """Add a row for each engine to the diagnosis of all, if there are several."""
    from stallscope.analyzers.fleet import Judged, fleet_of

    if len(engines) < 2:
        return diagnosis
    judged = [Judged(name, capture, judge(capture)) for name, capture in engines.items()]
    replicas, fleet = fleet_of(judged, diagnosis.thresholds)
    return replace(diagnosis, replicas=replicas, fleet=fleet)


def fleet_diagnosis(
    replicas: Mapping[str, Capture], notes: tuple[str, ...], judge: Judge
) -> Diagnosis:
    """Return the diagnosis of the replica that is held most, with a row for each of all.

    Its sentence tells of the fleet first. `notes` are put before the others.
    """
    from stallscope.analyzers.fleet import Judged, fleet_of

    judged = {name: Judged(name, capture, judge(capture)) for name, capture in replicas.items()}
    thresholds: Thresholds = next(iter(judged.values())).diagnosis.thresholds
    ranked, fleet = fleet_of(list(judged.values()), thresholds)
    worst = ranked[0].replica
    diagnosis = judged[worst].diagnosis
    if len(ranked) == 1:
        return replace(diagnosis, notes=(*notes, *diagnosis.notes))
    told = f"All that follows but the table of replicas is of {worst}, which is held most."
    sentence = f"{fleet.sentence} {worst}: {diagnosis.verdict.sentence}"
    return replace(
        diagnosis,
        verdict=replace(diagnosis.verdict, sentence=sentence),
        replicas=ranked,
        fleet=fleet,
        notes=(told, *notes, *diagnosis.notes),
    )
