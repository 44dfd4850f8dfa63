"""The last step of the derivation: how sure the verdict is."""

from __future__ import annotations

from collections.abc import Sequence

from stallscope.analyzers.confidence import GUESS, confidence, margin, stability
from stallscope.analyzers.explain.result import ExplainStep, Term
from stallscope.analyzers.result import Verdict, Window
from stallscope.analyzers.step.limit import Decision

_WEIGHTS = "measured 1.0, bound 0.8, derived 0.7, estimated 0.4 of what the decision used, and what"
_WEIGHTS += " else speaks for or against it"


def _given(name: str, value: float, source: str) -> Term:
    return Term(name, value, "fraction", "derived", source)


def explain_confidence(
    decision: Decision, windows: Sequence[Window], verdict: Verdict
) -> ExplainStep:
    """Explain the confidence from the decision's own figures."""
    question = "How sure is it?"
    quality = _given("quality", decision.quality, _WEIGHTS)
    if decision.bottleneck == "undetermined":
        terms: tuple[Term, ...] = (
            quality,
            _result(decision, windows, "round(0.5 + 0.3 * quality, 2)"),
        )
        because = "how sure it is that this evidence does not settle the class"
    else:
        steady = stability(windows, decision.bottleneck)
        left = min(1.0, max(0.0, decision.unexplained))
        apart = "min(1, max(0, share / max(next_share, 1e-9) - 1))" if decision.share > 0 else "0"
        formula = (
            f"round(min(most, {GUESS} + {1 - GUESS} * quality * (0.5 + 0.5 * margin) * "
            "(0.5 + 0.5 * stability) * (1 - unexplained / 2)), 2)"
        )
        terms = (
            quality,
            _given("share", decision.share, "of what the deciding step compared, the winner's"),
            _given("next_share", decision.next_share, "the runner-up's, 0 without one"),
            Term("margin", margin(decision), "fraction", "derived", "", None, apart),
            _given("stability", steady, "of the run's time, in windows of the same class"),
            _given("unexplained", left, "of the step, 0 where none was split"),
            _given("most", decision.cap, "the most that this kind of evidence allows"),
            _result(decision, windows, formula),
        )
        because = "evidence, margin to the next, windows and what is unexplained"
    if verdict.confidence != confidence(decision, windows):
        because += f"; held down to {verdict.confidence:g}, as nothing or one moment was recorded"
    return ExplainStep("confidence", question, f"{verdict.confidence:.2f}", because, terms)


def _result(decision: Decision, windows: Sequence[Window], formula: str) -> Term:
    value = confidence(decision, windows)
    return Term("confidence", value, "fraction", "estimated", "a prior", None, formula)
