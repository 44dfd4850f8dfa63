"""Step 3 of the derivation: what fills a step, by its budget, else by counters."""

from __future__ import annotations

from stallscope.analyzers.explain.demand import Found, answer_of
from stallscope.analyzers.explain.result import Comparison, ExplainStep, Term
from stallscope.analyzers.explain.terms import compared, of_budget, seen, worked_out
from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.load.starved import BETWEEN
from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.step.budget import overall
from stallscope.analyzers.step.clocks import ClockRatio, explained, is_slow
from stallscope.analyzers.step.limit import CLASS_PARTS, part_share
from stallscope.analyzers.thresholds import Thresholds

_OF_SAMPLES = ("prefills_per_token", "weights_read_share", "mfu", "mbu")
_COUNTERS = (
    "gpu_busy",
    "idle_in_queued",
    "sm_throughput",
    "tensor_active",
    "dram_throughput",
    "communication_exposed",
    "copies_exposed",
)


def explain_step(judgement: Judgement, found: Found, t: Thresholds) -> ExplainStep | None:
    """Explain what limits the step; None where the procedure ended before."""
    if judgement.branch not in ("step", "samples"):
        return None
    budget = overall(judgement.budgets)
    if budget is None or not budget.budget:
        return _by_counters(judgement, found, t)
    terms, comparisons = _by_budget(budget, t)
    question = "Which part of the step's time is the largest, and is it clear of the next?"
    is_overruled = judgement.is_overruled or judgement.bottleneck == "device"
    answer = "passes on" if is_overruled else "decides"
    because = "overruled by what follows" if is_overruled else judgement.decision.reason
    return ExplainStep("step", question, answer, because, terms, comparisons)


def _by_budget(
    budget: PhaseBudget, t: Thresholds
) -> tuple[tuple[Term, ...], tuple[Comparison, ...]]:
    parts = of_budget(budget)
    names = {p.name for p in parts}
    classes = [
        worked_out(
            f"{name}_share",
            part_share(budget, *of_class),
            " + ".join(part for part in of_class if part in names) or "0",
            tuple(p for p in parts if p.name in of_class),
        )
        for name, of_class in CLASS_PARTS.items()
    ]
    first, second = sorted(classes, key=lambda c: (-c.value, c.name))[:2]
    comparisons = [compared(first, "≥", t.limit_share, "limit_share")]
    terms = (*parts, *classes)
    if second.value > 0:
        formula = f"{first.name} / {second.name}"
        margin = worked_out("margin_to_next", first.value / second.value, formula, (first, second))
        terms = (*terms, margin)
        comparisons.append(compared(margin, "≥", t.limit_margin, "limit_margin"))
    left = next((p for p in parts if p.name == "unexplained"), None)
    if left is not None:
        comparisons.append(compared(left, "≥", t.model_error, "model_error"))
    return terms, tuple(comparisons)


def _by_counters(judgement: Judgement, found: Found, t: Thresholds) -> ExplainStep:
    question = "Without a step budget, do counters or kernels tell what limits?"
    terms = seen(found, *_COUNTERS)
    if judgement.branch == "samples":
        terms = (*terms, *seen(found, *_OF_SAMPLES))
    by_name = {term.name: term for term in terms}
    lines = (
        ("tensor_active", "≥", t.tensor_bound, "tensor_bound"),
        ("dram_throughput", "≥", t.dram_bound, "dram_bound"),
        ("tensor_active", "<", t.tensor_low, "tensor_low"),
        ("prefills_per_token", "≥", BETWEEN, None),
        ("weights_read_share", "≥", t.dram_bound, "dram_bound"),
        ("mfu", "≥", t.tensor_bound, "tensor_bound"),
        ("mbu", "≥", t.dram_bound, "dram_bound"),
    )
    comparisons = tuple(
        compared(by_name[name], sign, limit, key)
        for name, sign, limit, key in lines
        if name in by_name
    )
    answer = answer_of(judgement, judgement.branch)
    if judgement.is_overruled:
        return ExplainStep("counters", question, "passes on", "they do not", terms, comparisons)
    if judgement.bottleneck == "undetermined":
        answer = "not observable"
    return ExplainStep("counters", question, answer, judgement.decision.reason, terms, comparisons)


def explain_clocks(
    judgement: Judgement, found: Found, ratio: ClockRatio | None, t: Thresholds
) -> ExplainStep | None:
    """Explain whether slow clocks explain the step; None without clocks or a budget."""
    budget = overall(judgement.budgets)
    if ratio is None or budget is None or not budget.budget or judgement.branch != "step":
        return None
    question = "Do slow clocks, and not the work, explain the step?"
    clocks, parts = seen(found, "sm_clock_share", "memory_clock_share"), of_budget(budget)
    nominal, observed = explained(budget, ratio, t)
    names = {p.name for p in parts}

    def total(*wanted: str) -> str:
        return " + ".join(w for w in wanted if w in names) or "0"

    by_memory = "memory_clock_share" if is_slow(ratio.memory, t) else "1"
    by_sm = "sm_clock_share" if is_slow(ratio.sm, t) else "1"
    rest = total("host", "communication", "transfer")
    memory, compute = total("weights", "kv"), total("compute")
    used = (*clocks, *parts)
    at_nominal = worked_out(
        "explained_at_nominal", nominal, f"{memory} + {compute} + {rest}", parts
    )
    at_observed = worked_out(
        "explained_at_observed",
        observed,
        f"({memory}) / {by_memory} + ({compute}) / {by_sm} + {rest}",
        used,
    )
    formula = "explained_at_observed - explained_at_nominal"
    rise = worked_out("explained_more", observed - nominal, formula, used)
    comparisons = (
        compared(at_nominal, "<", t.explained_share, "explained_share"),
        compared(at_observed, "≥", t.explained_share, "explained_share"),
        compared(rise, "≥", t.clock_deficit, "clock_deficit"),
    )
    decides = judgement.bottleneck == "device" and judgement.decision.finding is None
    because = judgement.decision.reason if decides else "not all of these hold"
    answer = "decides" if decides else "passes on"
    terms = (*clocks, *parts, at_nominal, at_observed, rise)
    return ExplainStep("clocks", question, answer, because, terms, comparisons)
