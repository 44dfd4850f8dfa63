"""Capture checks before any verdict: what a capture cannot answer, and failures that answer it."""

from __future__ import annotations

from dataclasses import dataclass

from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import NotObservable

_STAGES = {
    "weights": "loading the weights",
    "kv": "allocating the KV cache",
    "step": "running a step",
    "probe": "probing the device",
}


@dataclass(frozen=True, slots=True)
class Checked:
    """`decision` ends the procedure; `notes` are plain sentences; the rest is not observable."""

    decision: Decision | None
    notes: tuple[str, ...]
    not_observable: tuple[NotObservable, ...]


def _certain(bottleneck: str, reason: str) -> Decision:
    return Decision(bottleneck, 1.0, 0.0, None, 0.0, QUALITY["measured"], reason)


def _out_of_memory(capture: Capture) -> Decision | None:
    event = next((e for e in capture.events if e.kind == "oom"), None)
    if event is None:
        return None
    stage = str(event.data.get("stage", "unknown"))
    asked = event.data.get("bytes")
    size = f" ({asked / 2**20:,.0f} MiB asked for)" if asked else ""
    return _certain("capacity", f"out of memory while {_STAGES.get(stage, stage)}{size}")


def _reader_findings(capture: Capture) -> tuple[Decision | None, tuple[str, ...]]:
    """Take what a reader found wrong: check events say what, and whether it blocks the verdict."""
    notes, decision = [], None
    for event in capture.events:
        if event.kind == "check":
            sentence = str(event.data["sentence"])
            notes.append(sentence)
            if "verdict" in event.data.get("blocks", ()) and decision is None:
                decision = _certain(str(event.data["class"]), sentence)
    return decision, tuple(notes)


def _drift(capture: Capture) -> str:
    """Say by how much each probe moved."""
    seen: dict[str, dict[str, float]] = {}
    for event in capture.events:
        if event.kind == "probe" and event.data.get("when") in ("before", "after"):
            seen.setdefault(event.data["probe"], {})[event.data["when"]] = event.data["value"]
    moved = [
        f"{name} {pair['after'] / pair['before'] - 1:+.0%}"
        for name, pair in seen.items()
        if len(pair) == 2 and pair["before"]
    ]
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
    gaps = [e for e in capture.events if e.kind == "gap"]
    notes += [f"Samples are missing: {e.data.get('reason', 'a sampler stopped')}." for e in gaps]
    if capture.cut is not None:
        notes.append(f"The capture is incomplete: {capture.cut.note}.")
    return notes


def _unobserved(capture: Capture) -> tuple[NotObservable, ...]:
    """Repeat what samplers said they cannot read, each once."""
    seen: dict[str, NotObservable] = {}
    for event in capture.events:
        if event.kind == "not_observable":
            what = str(event.data["what"])
            seen[what] = NotObservable(
                what, str(event.data["reason"]), str(event.data.get("how", ""))
            )
    return tuple(seen.values())


def check(capture: Capture) -> Checked:
    """Check a capture before judging it."""
    decision = _out_of_memory(capture)
    reader_decision, notes = _reader_findings(capture)
    decision = decision or reader_decision
    steps = [s for s in capture.steps if not s.warmup]
    has_evidence = steps or capture.requests or capture.kernels or capture.device_samples
    if decision is None and not has_evidence and not capture.engine_samples:
        reason = "the capture holds no step, request or sample"
        decision = Decision("undetermined", 0.0, 0.0, None, 0.0, QUALITY["measured"], reason)
    warnings = capture.subject.model.warnings if capture.subject.model is not None else ()
    all_notes = (*notes, *_flag_notes(capture), *warnings)
    return Checked(decision, all_notes, _unobserved(capture))
