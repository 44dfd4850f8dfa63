"""Several runs side by side, and the experiment that they make of one setting."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.experiment.conclude import finding_of
from stallscope.analyzers.experiment.differing import differing, doubted
from stallscope.analyzers.experiment.groups import groups_of
from stallscope.analyzers.experiment.load_sweep import judge_loads, load_among
from stallscope.analyzers.experiment.result import Comparison, Conclusion, Finding, Run
from stallscope.analyzers.experiment.settings import Setting, setting_of
from stallscope.analyzers.step.limit import QUALITY
from stallscope.analyzers.words import both
from stallscope.profiler.wording import figure

_MOST_SURE = 0.9
_STEPS = ("tpot_s", "itl_s", "decode_step_s")  # what a burden adds to, once a step
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
_TYPICAL = ("", "mean_", "median_")  # a table may have a figure by its mean or its median


def compare(
    runs: Sequence[Run], *, vary: str | None, metric: str | None, version: str
) -> Comparison:
    """Set runs side by side; judge them as an experiment on `vary`, or on the one that differs."""
    told = tuple(runs)
    apart = differing(told)
    name = vary or (apart[0] if len(apart) == 1 else load_among(apart))
    figure = metric or _metric(told)
    if name is None or figure is None:
        return Comparison(version, told, None, figure, apart, (), (), _aside(told, apart, figure))
    setting = setting_of(name)
    loads = judge_loads(told, name, figure) if setting is None else None
    if loads is not None:
        return Comparison(version, told, name, figure, apart, *loads)
    groups = groups_of(told, name, figure)
    if setting is None or not groups:
        why = _unknown(name) if setting is None else _ungrouped(told, name, figure)
        conclusion = Conclusion("undetermined", 0.0, why)
        return Comparison(version, told, name, figure, apart, groups, (), conclusion)
    findings = tuple(finding_of(g, setting, is_step=_plain(figure) in _STEPS) for g in groups)
    quality = min(QUALITY[run.figures[figure].provenance] for run in told if figure in run.figures)
    conclusion = _conclude(findings, setting, quality)
    return Comparison(version, told, name, figure, apart, groups, findings, conclusion)


def _metric(runs: Sequence[Run]) -> str | None:
    """Return the figure that all runs have: the best known, else a table's first."""
    common = [n for n in runs[0].figures if all(n in run.figures for run in runs)]
    best = (of + name for name in PREFERRED for of in _TYPICAL if of + name in common)
    return next(best, common[0] if common else None)


def _plain(figure: str) -> str:
    """Return the figure that a mean or a median is of."""
    return figure.removeprefix("mean_").removeprefix("median_")


def _aside(runs: Sequence[Run], apart: Sequence[str], figure: str | None) -> Conclusion:
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
            f"with --vary.{_leave_out(runs, apart)}"
        )
    return Conclusion("undetermined", 0.0, sentence)


def _unknown(name: str) -> str:
    return (
        f"What a response to {name} would prove is not known here; docs/compare.md lists the "
        "settings that are."
    )


def _ungrouped(runs: Sequence[Run], name: str, figure: str) -> str:
    usable = tuple(run for run in runs if name in run.settings and figure in run.figures)
    others = [n for n in differing(usable) if n != name] if usable else []
    return (
        f"No two runs differ in {name} alone and have {figure}: repeat one with another value and "
        f"everything else as it was.{_leave_out(usable, others)}"
    )


def _leave_out(runs: Sequence[Run], apart: Sequence[str]) -> str:
    """Say of columns that may well be results what they were taken for, and what to do then."""
    names = doubted(runs, apart)
    if not names:
        return ""
    was, it, is_it = ("was", "it", "it is") if len(names) == 1 else ("were", "them", "they are")
    what = "a setting" if len(names) == 1 else "settings"
    results = "a result" if len(names) == 1 else "results"
    return (
        f" {_capital(both(names))} {was} taken for {what}: leave {it} out if {is_it} {results}, "
        "or give the heading its unit (_ms, _s, /s)."
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
