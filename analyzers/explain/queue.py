"""Step 2 of the derivation: which limit held the queue, and what preemption cost."""

from __future__ import annotations

from stallscope.analyzers.explain.demand import Found, answer_of
from stallscope.analyzers.explain.result import ExplainStep
from stallscope.analyzers.explain.terms import compared, seen, worked_out
from stallscope.analyzers.judge import MOST, Judgement, by_class
from stallscope.analyzers.load.queue_limits import LIMIT_CLASS
from stallscope.analyzers.step.busy_wait import BUSY, LOW_POWER
from stallscope.analyzers.thresholds import Thresholds


def explain_queue(judgement: Judgement, found: Found) -> ExplainStep | None:
    """Explain which limit stood at its cap while something waited; None where nothing queued."""
    is_hang = judgement.branch == "hang"
    if judgement.branch != "queue" and not (is_hang and judgement.admission is not None):
        return None
    question = "Which admission limit stood at its cap while something waited?"
    admission, decision = judgement.admission, judgement.decision
    is_overruled = judgement.is_overruled or is_hang
    because = "overruled by what follows" if is_overruled else decision.reason
    if admission is None:
        return ExplainStep("queue", question, "not observable", because)
    terms = seen(found, *(f"limit_{name}" for name, _ in admission.ranked()))
    comparisons = []
    for name, share in by_class(admission):
        parts = [limit for limit in admission.shares if LIMIT_CLASS.get(limit, limit) == name]
        formula = " + ".join(f"limit_{limit}" for limit in sorted(parts))
        total = worked_out(f"held_by_{name}", share, formula, terms)
        comparisons.append(compared(total, "≥", MOST))
        terms = (*terms, total)
    answer = "passes on" if is_overruled else "decides"
    return ExplainStep("queue", question, answer, because, terms, tuple(comparisons))


def explain_standstill(judgement: Judgement, found: Found) -> ExplainStep | None:
    """Explain whether the engine stood still with requests in it; None where a queue was judged."""
    is_hang = judgement.branch == "hang" and judgement.admission is None
    if judgement.branch not in ("standstill", "step", "samples") and not is_hang:
        return None
    question = "Did the engine stand still with requests in it?"
    terms = seen(found, "standstill_share")
    if not terms:
        because = "no stretch in which requests were there and no counter moved was seen"
        return ExplainStep("standstill", question, "passes on", because)
    decides = judgement.branch == "standstill"
    because = judgement.decision.reason if decides else "not for most of the time with requests"
    if is_hang:
        because = "overruled by what follows"
    answer = answer_of(judgement, "standstill")
    return ExplainStep(
        "standstill", question, answer, because, terms, (compared(terms[0], "≥", MOST),)
    )


def explain_hang(judgement: Judgement, found: Found) -> ExplainStep | None:
    """Explain whether devices are busy at low power while the engine stands still."""
    if judgement.branch not in ("hang", "standstill") and judgement.decision.limit != "stalled":
        return None
    question = "Is a device busy at low power meanwhile, as kernels are that only wait?"
    terms = seen(found, "gpu_busy_busiest", "power_of_limit")
    if len(terms) < 2:
        because = "no utilisation and power of the devices was sampled beside it"
        return ExplainStep("hang", question, "not observable", because, terms)
    comparisons = (compared(terms[0], "≥", BUSY), compared(terms[1], "≤", LOW_POWER))
    is_hang = judgement.branch == "hang"
    because = judgement.decision.reason if is_hang else "not both hold"
    answer = answer_of(judgement, "hang")
    return ExplainStep("hang", question, answer, because, terms, comparisons)


def explain_preemption(judgement: Judgement, found: Found, t: Thresholds) -> ExplainStep | None:
    """Explain whether preemption cost so much that the pool is the first cause."""
    if "preemptions" not in found:
        return None
    question = "Does preemption cost so much that the KV pool is the first cause?"
    count, parts = seen(found, "preemptions"), seen(found, "recompute_share", "preempted_share")
    if not parts:
        because = "nothing was preempted" if not count[0].value else "what it cost was not seen"
        answer = "passes on" if not count[0].value else "not observable"
        return ExplainStep("preemption", question, answer, because, count)
    formula = " + ".join(part.name for part in parts)
    cost = worked_out("preemption_cost", sum(p.value for p in parts), formula, parts)
    decides = judgement.preemption is not None
    because = (
        judgement.decision.reason if decides else "it costs less, or the pool was named already"
    )
    comparisons = (compared(cost, "≥", t.queue_wait_share, "queue_wait_share"),)
    answer = "decides" if decides else "passes on"
    terms = (*count, *parts, cost)
    return ExplainStep("preemption", question, answer, because, terms, comparisons)


def explain_cliff(judgement: Judgement, found: Found, t: Thresholds) -> ExplainStep | None:
    """Explain what a full pool cost that nobody counted; None where the engine fell off nothing."""
    names = ("kv_full_share", "tokens_per_s_when_full", "tokens_per_s_with_room")
    terms = seen(found, *names)
    if len(terms) < len(names):
        return None
    question = "Does the engine make so much less with a full KV pool that it is the first cause?"
    share, full, room = (term.value for term in terms)
    formula = f"{names[0]} * (1 - {names[1]} / {names[2]})"
    cost = worked_out("full_pool_cost", share * (1.0 - full / room), formula, terms)
    decides = judgement.cliff is not None
    because = (
        judgement.decision.reason if decides else "it costs less, or the pool was named already"
    )
    comparisons = (compared(cost, "≥", t.queue_wait_share, "queue_wait_share"),)
    answer = "decides" if decides else "passes on"
    return ExplainStep("full-pool", question, answer, because, (*terms, cost), comparisons)
