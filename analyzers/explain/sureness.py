"""The last step of the derivation: how sure the verdict is."""

from __future__ import annotations

from stallscope.analyzers.confidence import SETTLES, confidence, knots_of
from stallscope.analyzers.confidence_map import segment
from stallscope.analyzers.explain.result import ExplainStep, Term
from stallscope.analyzers.result import Grounds, Verdict
from stallscope.analyzers.step.limit import Decision

_WEIGHTS = "measured 1.0, bound 0.8, derived 0.7, estimated 0.4 of what the decision used, and what"
_WEIGHTS += " else speaks for or against it"
_WEIGHT = "quality * (0.5 + 0.5 * margin) * (0.5 + 0.5 * stability) * (1 - unexplained / 2)"
_APART = "min(1, max(0, share / max(next_share, 1e-9) - 1))"
_OPEN = f"1 - min(1, max(0, share) / {SETTLES})"


def _given(name: str, value: float, source: str) -> Term:
    return Term(name, value, "fraction", "derived", source)


def _worked(name: str, value: float, formula: str) -> Term:
    return Term(name, value, "fraction", "derived", "", None, formula)


def explain_confidence(decision: Decision, verdict: Verdict) -> ExplainStep:
    """Explain the confidence from the decision's own figures."""
    question, found = "How sure is it?", verdict.grounds
    if found is None:
        return ExplainStep("confidence", question, f"{verdict.confidence:.2f}", "not derived")
    if decision.bottleneck == "undetermined":
        terms: tuple[Term, ...] = (
            _given("share", decision.share, "of what the deciding step compared, the largest"),
            _worked("weight", found.weight, _OPEN),
        )
        because = "how far this evidence is from settling the class"
    else:
        terms = (
            _given("quality", found.quality, _WEIGHTS),
            _given("share", decision.share, "of what the deciding step compared, the winner's"),
            _given("next_share", decision.next_share, "the runner-up's, 0 without one"),
            _worked("margin", found.margin, _APART if decision.share > 0 else "0"),
            _given("stability", found.stability, "of the run's time, in windows of the same class"),
            _given("unexplained", found.unexplained, "of the step, or of the time of a queue"),
            _worked("weight", found.weight, _WEIGHT),
        )
        because = "evidence, margin to the next, windows and what is unexplained"
    most = _given("most", found.most, "the most that this kind of evidence allows")
    terms = (*terms, most, _result(decision, found))
    because += ", and how often verdicts of such a weight were right on labelled captures"
    if verdict.confidence != confidence(decision, found):
        because += f"; held down to {verdict.confidence:g}, as nothing was recorded"
    return ExplainStep("confidence", question, f"{verdict.confidence:.2f}", because, terms)


def _result(decision: Decision, found: Grounds) -> Term:
    (x0, y0), (x1, y1) = segment(knots_of(decision.bottleneck), found.weight)
    formula = f"round(min(most, {y0} + ({y1} - {y0}) * ((weight - {x0}) / ({x1} - {x0}))), 2)"
    value, source = confidence(decision, found), "fitted to labelled captures (docs/corpus.md)"
    return Term("confidence", value, "fraction", "estimated", source, None, formula)
