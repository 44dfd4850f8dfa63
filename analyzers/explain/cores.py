"""After step 3 of the derivation: whether others had the cores that a step needed."""

from __future__ import annotations

from stallscope.analyzers.explain.demand import Found
from stallscope.analyzers.explain.result import ExplainStep
from stallscope.analyzers.explain.terms import compared, of_budget, seen, worked_out
from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.step.budget import overall
from stallscope.analyzers.step.core_wait import FINDING
from stallscope.analyzers.step.limit import CLASS_PARTS, part_share
from stallscope.analyzers.thresholds import Thresholds

_TOLD = ("core_wait_longest", "core_wait_threads", "cores_usable", "cores_own", "cores_others")


def explain_cores(judgement: Judgement, found: Found, t: Thresholds) -> ExplainStep | None:
    """Explain whether others took the cores; None on a GPU, or where nothing told."""
    budget = overall(judgement.budgets)
    if "core_wait" not in found or budget is None or not budget.budget:
        return None
    if judgement.branch != "step":
        return None
    told, (waited,) = seen(found, *_TOLD, "cores_stolen"), seen(found, "core_wait")
    name, parts = max(CLASS_PARTS.items(), key=lambda item: part_share(budget, *item[1]))
    used = tuple(p for p in of_budget(budget) if p.name in parts)
    formula = " + ".join(p.name for p in used) or "0"
    largest = worked_out(f"{name}_share", part_share(budget, *parts), formula, used)
    terms, comparisons = [*told, waited, *used, largest], []
    comparisons.append(compared(waited, "≥", t.core_wait, "core_wait"))
    if largest.value > 0:
        ratio, formula = waited.value / largest.value, f"core_wait / {largest.name}"
        margin = worked_out("margin_to_next", ratio, formula, (waited, largest), side="lower")
        terms.append(margin)
        comparisons.append(compared(margin, "≥", t.limit_margin, "limit_margin"))
    decides = judgement.decision.finding == FINDING
    because = judgement.decision.reason if decides else "not all of these hold"
    question = "Did others have the cores that the step needed?"
    answer = "decides" if decides else "passes on"
    return ExplainStep("cores", question, answer, because, tuple(terms), tuple(comparisons))
