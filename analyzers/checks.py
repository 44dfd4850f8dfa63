"""Capture checks before any verdict: what a capture cannot answer, and failures that answer it."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from stallscope.analyzers import isolated
from stallscope.analyzers.benchmark.facts import judged_trial
from stallscope.analyzers.classes import CLASSES
from stallscope.analyzers.cost.drift import probe_changes
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.event_fields import notes as event_notes
from stallscope.analyzers.event_fields import number, text, whole_events
from stallscope.analyzers.kv_copies import copies_note, decide_by_copies
from stallscope.analyzers.load.full_pool import decide_by_full_pool
from stallscope.analyzers.load.queue_limits import LIMIT_CLASS
from stallscope.analyzers.refusals import (
    is_of_a_start,
    pieces_note,
    refusal_text,
    refused_allocations,
)
from stallscope.analyzers.refused_device import other_device_note
from stallscope.analyzers.result import Remedy
from stallscope.analyzers.stated.engine_figures import disagreements
from stallscope.analyzers.step.contention import contention_note
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.analyzers.step.overlap import overlap_note
from stallscope.analyzers.trace_devices import missing_devices
from stallscope.analyzers.trace_ranks import straggler_notes
from stallscope.analyzers.weights_alone import excess_text
from stallscope.analyzers.whatif.out_of_memory import memory_advice
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import NotObservable


@dataclass(frozen=True, slots=True)
class Checked:
    """`decision` ends the procedure; `notes` are plain sentences; the rest is not observable.

    `is_empty` says that the decision is for want of anything to judge; `ending` says that what was
    watched was gone at the end.
    """

    decision: Decision | None
    notes: tuple[str, ...]
    not_observable: tuple[NotObservable, ...]
    is_empty: bool = False
    ending: str | None = None


def _certain(bottleneck: str, reason: str) -> Decision:
    share = 0.0 if bottleneck == "undetermined" else 1.0
    return Decision(bottleneck, share, 0.0, None, 0.0, QUALITY["measured"], reason)


def _out_of_memory(capture: Capture, cost: CostModel | None) -> Decision | None:
    event = next(iter(refused_allocations(capture)), None)
    if event is None:
        return None
    text = refusal_text(event, capture.subject.model) + excess_text(event, capture, cost)
    decision = _certain("capacity", f"out of memory{text}")
    if not is_of_a_start(event):
        return decision
    remedy = memory_advice(event, capture, cost).remedies[0]
    return dataclasses.replace(decision, headline=_failed_start(capture, remedy, decision.reason))


def _failed_start(capture: Capture, remedy: Remedy, reason: str) -> str:
    """Say at which stage a start failed, and what would let it start."""
    engine = capture.subject.engine or ""
    flag = remedy.flag.get("stallscope" if engine == "builtin" else engine)
    how = remedy.action if flag is None else f"{remedy.action}: {flag}"
    return f"The start failed: {reason}. To let it start, {how}."


def _reader_findings(capture: Capture) -> tuple[Decision | None, tuple[str, ...]]:
    """Take what a reader found wrong: check events say what, and whether it blocks the verdict."""
    notes, decision = [], None
    for event in whole_events(capture, "check"):
        sentence, bottleneck = event.data["sentence"], event.data.get("class")
        if event.data.get("ends") is True:
            continue
        notes.append(sentence)
        blocks = event.data.get("blocks")
        is_final = isinstance(blocks, list | tuple) and "verdict" in blocks
        if is_final and bottleneck in CLASSES and decision is None:
            decision = _certain(bottleneck, sentence.rstrip("."))
            if event.data.get("headline") is True:
                decision = dataclasses.replace(decision, headline=sentence)
            limit = event.data.get("limit")
            if isinstance(limit, str) and LIMIT_CLASS.get(limit) == bottleneck:
                decision = dataclasses.replace(decision, limit=limit)
            most = number(event, "most_confidence")
            if most is not None:
                decision = dataclasses.replace(decision, cap=min(decision.cap, most))
    return decision, tuple(notes)


def _drift(capture: Capture) -> str:
    """Say by how much each probe moved."""
    moved = [f"{name} {c * 100:+.0f} %" for name, c in probe_changes(capture).items()]
    return f" ({', '.join(moved)})" if moved else ""


def _flag_notes(capture: Capture) -> list[str]:
    flags = capture.meta.get("flags") or {}
    notes = []
    if "unstable" in flags:
        notes.append(
            f"Unstable machine: its probes before and after the run differ{_drift(capture)}."
        )
    if "interrupted" in flags:
        notes.append("The run was interrupted before its workload was done.")
    for event in capture.events:
        if event.kind == "gap":
            what = event.data.get("what", "a sampler")
            reason = event.data.get("reason", "it stopped")
            notes.append(f"Samples of {what} are missing: {reason}.")
        if event.kind == "error":
            kind, message = event.data.get("type", "Error"), event.data.get("message", "")
            notes.append(f"An error was recorded: {kind}: {str(message).rstrip('.')}.")
    if capture.cut is not None:
        notes.append(f"The capture is incomplete: {capture.cut.note}.")
    return notes


def _unobserved(capture: Capture) -> tuple[NotObservable, ...]:
    """Repeat what samplers could not read, each once, and together where the reason is one."""
    said: dict[str, tuple[str, str]] = {}
    for event in whole_events(capture, "not_observable"):
        said[event.data["what"]] = (event.data["reason"], text(event, "how") or "")
    together: dict[tuple[str, str], list[str]] = {}
    for what, why in said.items():
        together.setdefault(why, []).append(what)
    return tuple(NotObservable(", ".join(what), *why) for why, what in together.items())


def check(capture: Capture, cost: CostModel | None = None) -> Checked:
    """Check a capture before judging it; with a cost model, whether the weights fit."""
    decision = _out_of_memory(capture, cost)
    reader_decision, notes = _reader_findings(capture)
    decision = decision or reader_decision or missing_devices(capture)
    if _is_open(decision) and not _has_evidence(capture) and not _failed(capture):
        decision = decide_by_copies(capture) or decision
    if decision is None:
        decision = decide_by_full_pool(capture)
    is_empty = decision is None and not _has_evidence(capture)
    if is_empty:
        reason = "nothing was recorded: the capture holds no step, request or sample of a load"
        decision = Decision("undetermined", 0.0, 0.0, None, 0.0, QUALITY["measured"], reason)
    warnings = capture.subject.model.warnings if capture.subject.model is not None else ()
    all_notes = (
        *notes,
        *pieces_note(capture),
        *other_device_note(capture),
        *copies_note(capture),
        *disagreements(capture),
        *isolated.notes(capture),
        *event_notes(capture),
        *straggler_notes(capture),
        *_flag_notes(capture),
        *(() if is_empty else contention_note(capture)),
        *overlap_note(capture),
        *warnings,
    )
    return Checked(decision, all_notes, _unobserved(capture), is_empty, _ending(capture))


def _ending(capture: Capture) -> str | None:
    """Return the sentence that says how what was watched ended, where it did not outlast it."""
    ends = (e for e in whole_events(capture, "check") if e.data.get("ends") is True)
    return next((e.data["sentence"] for e in ends), None)


def _is_open(decision: Decision | None) -> bool:
    return decision is None or decision.bottleneck == "undetermined"


def _failed(capture: Capture) -> bool:
    return any(event.kind == "error" for event in capture.events)


def _has_evidence(capture: Capture) -> bool:
    """Say whether any load was seen: samples of the host, or of probing, are none."""
    if any(not s.warmup for s in capture.steps) or capture.requests or capture.kernels:
        return True
    if judged_trial(capture) is not None:
        return True
    if capture.meta.get("load_generator") == "stallscope run":
        return False
    return bool(capture.engine_samples) or any(s.device != "host" for s in capture.device_samples)
