"""The answer, and the document's rules beside it."""

from __future__ import annotations

from collections.abc import Iterator

from stallscope.analyzers.result import CaptureInfo, Diagnosis, RuleResult, Verdict
from stallscope.profiler.spec import Subject
from stallscope.reports import format as fmt
from stallscope.reports.blocks import Block, Column, Section, Table, Text

DOCUMENT_PREFIX = "By the document's rules:"
_FACTS = (Column("", "quiet"), Column(""))
_RULES = (Column("Rule"), Column("Status", "status"), Column("Observed"), Column("Because"))
_WHO = (
    "The document is the text that this method was taken from. It has fixed rules for memory, "
    "bandwidth, queueing and the share of decode; they are applied to the letter here, whatever "
    "the verdict above says."
)


_OF_LOAD = ("in_flight", "waiting_mean", "idle_share", "queue_wait_share")


def verdict(diagnosis: Diagnosis) -> Section:
    """The sentence, what stands behind it, what was observed, and the document's line."""
    facts = (*_answer(diagnosis), *_observed(diagnosis))
    return Section("", (*_headline(diagnosis), Table(_FACTS, facts), *_document(diagnosis)))


def nothing(diagnosis: Diagnosis) -> Section:
    """The sentence and what was observed, of a capture that holds nothing to judge."""
    facts = tuple(_observed(diagnosis))
    return Section("", (*_headline(diagnosis), Table(_FACTS, facts)))


def _headline(diagnosis: Diagnosis) -> Iterator[Block]:
    yield Text(diagnosis.verdict.sentence, "strong")
    yield from (Text(f"Warning: {warning}") for warning in diagnosis.warnings)


def rules(diagnosis: Diagnosis) -> Section:
    """Each of the document's rules with the numbers that settled it."""
    rows = tuple(_rule(rule) for rule in diagnosis.rules)
    advice = diagnosis.document.advice
    said = Text(f"The document's advice: {advice}.") if advice else Text("")
    return Section("Rule check", (Text(_WHO, "quiet"), Table(_RULES, rows), said))


def _answer(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    verdict, goal = diagnosis.verdict, diagnosis.goal
    yield "Verdict", _class(verdict)
    if verdict.finding:
        yield "Finding", f"{verdict.finding} (docs/findings.md says when it lies and how to check)"
    if verdict.between:
        yield ("Between" if verdict.between[1:] else "Perhaps"), fmt.listed(verdict.between)
    if diagnosis.subject.isolated_phases:
        yield "Load", f"none was served: phases were isolated; judged on {_phase(verdict.phase)}"
    elif not verdict.is_load_seen and tells_load(diagnosis):
        yield "Load", f"not observable: nothing tells what waited; {_judged_as(verdict)}"
    elif tells_load(diagnosis):
        yield "Load", f"{verdict.load}; judged on {_phase(verdict.phase)}"
    else:
        yield "Load", "not observable: nothing recorded tells how many requests ran or waited"
    if verdict.next_limit:
        yield "Next limit", f"{verdict.next_limit}, once this one is lifted"
    yield "By goal", " · ".join(_by_goal(verdict, goal))


def _judged_as(verdict: Verdict) -> str:
    return f"judged as {verdict.load}, on {_phase(verdict.phase)}"


def _class(verdict: Verdict) -> str:
    """Name the class; how sure one is that nothing is sure helps nobody (JSON has the figure)."""
    if verdict.bottleneck == "undetermined":
        return verdict.bottleneck
    return f"{verdict.bottleneck}, confidence {fmt.rough_percent(verdict.confidence)}"


def tells_load(diagnosis: Diagnosis) -> bool:
    """Tell whether anything says what the load was; kernels and counters alone do not."""
    seen = any(m.name in _OF_LOAD for m in diagnosis.measures)
    return bool(diagnosis.phases or diagnosis.latency or seen) or diagnosis.verdict.load != "served"


def _by_goal(verdict: Verdict, goal: str | None) -> Iterator[str]:
    limits = verdict.limits
    for name, words, limit in (
        ("ttft", "time to first token", limits.ttft),
        ("tpot", "time per output token", limits.tpot),
        ("throughput", "throughput", limits.throughput),
    ):
        yield f"{words}: {limit}{' (your goal)' if name == goal else ''}"


def _phase(phase: str) -> str:
    return "all phases" if phase == "all" else f"{phase} steps"


def _observed(diagnosis: Diagnosis) -> Iterator[tuple[str, str]]:
    subject = ", ".join(_subject(diagnosis.subject))
    if subject:
        yield "Observed", subject
    if diagnosis.subject.workload:
        yield "Workload", diagnosis.subject.workload
    if diagnosis.capture.sources or diagnosis.capture.duration_s is not None:
        yield "Capture", _capture(diagnosis.capture)
    if diagnosis.capture.cut:
        yield "Cut", diagnosis.capture.cut_note or "the capture was not closed; its end is missing"


def _subject(subject: Subject) -> Iterator[str]:
    if subject.model:
        yield subject.model.name
    if subject.dtype:
        yield f"weights {subject.dtype}"
    if subject.kv_dtype:
        yield f"KV {subject.kv_dtype}"
    if subject.device:
        count = f"{subject.num_devices} × " if subject.num_devices > 1 else ""
        yield f"on {count}{subject.device.name}"
    if subject.engine:
        yield f"engine {subject.engine}"


def _capture(capture: CaptureInfo) -> str:
    sources = ", ".join(f"{source.path} ({source.kind})" for source in capture.sources)
    length = "" if capture.duration_s is None else fmt.seconds(capture.duration_s)
    return " from ".join(filter(None, (length, sources)))


def _document(diagnosis: Diagnosis) -> Iterator[Block]:
    document = diagnosis.document
    said = document.sentence.removeprefix(DOCUMENT_PREFIX).strip()
    yield Text(f"{DOCUMENT_PREFIX} {said}", "line")
    if document.differs_because and document.differs_because not in said:
        yield Text(f"Why the verdict differs: {document.differs_because}")


def _rule(rule: RuleResult) -> tuple[tuple[str, ...], str, tuple[str, ...], str]:
    observed = tuple(f"{m.name} {fmt.measure(m)}" for m in rule.measures)
    return (rule.id, rule.text), rule.status, observed or ("nothing",), rule.reason
