"""Several runs side by side, and the experiment that they make of one setting."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.experiment.conclude import finding_of
from stallscope.analyzers.experiment.differing import differing
from stallscope.analyzers.experiment.groups import groups_of
from stallscope.analyzers.experiment.result import Comparison, Conclusion, Finding, Run
from stallscope.analyzers.experiment.settings import Setting, setting_of
from stallscope.analyzers.words import both
from stallscope.profiler.evidence import Provenance
from stallscope.profiler.wording import figure

_QUALITY: dict[Provenance, float] = {
    "measured": 1.0,
    "bound": 0.8,
    "derived": 0.7,
    "estimated": 0.4,
}
_MOST_SURE = 0.9
_STEPS = frozenset({"tpot_s", "itl_s", "decode_step_s"})  # what a burden adds to, once a step
# The figure that speaks for a run, best first; of a table its own first column.
PREFERRED = (
    "output_tokens_per_s",
    "tpot_s",
    "decode_step_s",
    "itl_s",
    "requests_per_s",
    "e2e_s",
    "input_tokens_per_s",
    "ttft_s",
    "prefill_step_s",
)


def compare(
    runs: Sequence[Run], *, vary: str | None, metric: str | None, version: str
) -> Comparison:
    """Set runs side by side; judge them as an experiment on `vary`, or on the one that differs."""
    told = tuple(runs)
    apart = differing(told)
    name = vary or (apart[0] if len(apart) == 1 else None)
    figure = metric or _metric(told)
    if name is None or figure is None:
        return Comparison(version, told, None, figure, apart, (), (), _aside(apart, figure))
    setting = setting_of(name)
    groups = groups_of(told, name, figure)
    if setting is None or not groups:
        why = _unknown(name) if setting is None else _ungrouped(name, figure)
        conclusion = Conclusion("undetermined", 0.0, why)
        return Comparison(version, told, name, figure, apart, groups, (), conclusion)
    findings = tuple(finding_of(g, setting, is_step=figure in _STEPS) for g in groups)
    quality = min(_QUALITY[run.figures[figure].provenance] for run in told if figure in run.figures)
    conclusion = _conclude(findings, setting, quality)
    return Comparison(version, told, name, figure, apart, groups, findings, conclusion)


def _metric(runs: Sequence[Run]) -> str | None:
    """Return the figure that all runs have: the best known, else a table's first."""
    common = [n for n in runs[0].figures if all(n in run.figures for run in runs)]
    return next((n for n in PREFERRED if n in common), common[0] if common else None)


def _aside(apart: Sequence[str], figure: str | None) -> Conclusion:
    if figure is None:
        sentence = "The runs have no figure in common: nothing of them can be compared."
    elif not apart:
        sentence = (
            "Nothing that the runs state differs between them: say what was varied with --vary "
            "NAME --values A,B."
        )
    else:
        sentence = (
            f"The runs differ in {both(apart)}: one setting at a time tells what limits; name it "
            "with --vary."
        )
    return Conclusion("undetermined", 0.0, sentence)


def _unknown(name: str) -> str:
    return (
        f"What a response to {name} would prove is not known here; docs/compare.md lists the "
        "settings that are."
    )


def _ungrouped(name: str, figure: str) -> str:
    return (
        f"No two runs differ in {name} alone and have {figure}: repeat one with another value and "
        "everything else as it was."
    )


def _conclude(findings: Sequence[Finding], setting: Setting, quality: float) -> Conclusion:
    """Take the strongest finding that proves a class; an exclusion needs every group."""
    proving = [f for f in findings if f.bottleneck is not None]
    excluded = {f.excluded for f in findings}
    shown = tuple(sorted(c for c in excluded if c)) if len(excluded) == 1 else ()
    if proving:
        best = max(proving, key=lambda f: (f.strength, abs(f.share or 0.0)))
        found = best.bottleneck or "undetermined"
        confidence = min(_MOST_SURE, best.strength * quality)
        return Conclusion(found, confidence, _sentence(best, found), (), shown)
    split = next((f for f in findings if f.between), None)
    if split is not None:
        sentence = (
            f"{_of(split)}{_capital(split.says)}: {both(split.between)} cannot be told apart."
        )
        return Conclusion("undetermined", 0.0, sentence, split.between, shown)
    told = "; ".join(f"{_of(f)}{f.says}" for f in findings)
    if shown:
        return Conclusion("undetermined", 0.0, f"Not {both(shown)}: {told}.", (), shown)
    return Conclusion("undetermined", 0.0, f"Undetermined: {told}.")


_LIMIT_WORDS = {
    "bandwidth": "Memory bandwidth limits",
    "compute": "Compute limits",
    "host": "The host limits",
    "interconnect": "The interconnect limits",
    "scheduling": "The scheduler limits",
    "capacity": "Memory capacity limits",
    "client": "The client limits, not the server",
    "device": "The device limits itself",
}


def _sentence(finding: Finding, found: str) -> str:
    implied = finding.implied_bytes_per_s
    rate = "" if implied is None else f", as if it passed at {figure(implied / 1e9)} GB/s"
    return f"{_LIMIT_WORDS[found]}: {_of(finding)}{finding.says}{rate}."


def _of(finding: Finding) -> str:
    return f"at {finding.group}, " if finding.group else ""


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
