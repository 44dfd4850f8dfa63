"""Steps 0 and 1 of the derivation: whether the capture can answer, and how much was asked."""

from __future__ import annotations

from collections.abc import Mapping

from stallscope.analyzers.benchmark.demand import SENT_SHARE
from stallscope.analyzers.explain.result import Comparison, ExplainStep, Term
from stallscope.analyzers.explain.terms import compared, seen, worked_out
from stallscope.analyzers.judge import Judgement
from stallscope.analyzers.load.in_front import CORE_AT_REST, CORE_FULL
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.evidence import Measure

Found = Mapping[str, Measure]


def answer_of(judgement: Judgement, branch: str) -> str:
    """Say whether a step decided or left it to the next."""
    return "decides" if judgement.branch == branch else "passes on"


def explain_check(judgement: Judgement, found: Found) -> ExplainStep:
    """Explain whether a failure or a check of the capture ended the procedure."""
    decides = judgement.branch == "check"
    because = "no failure and no check of the capture ends the procedure here"
    return ExplainStep(
        "check",
        "Did memory fail, or can this capture not answer?",
        answer_of(judgement, "check"),
        judgement.decision.reason if decides else because,
        seen(found, "allocation_failures"),
    )


def explain_sender(judgement: Judgement, found: Found) -> ExplainStep | None:
    """Explain whether a load generator kept its own rate; None of closed loops."""
    terms = seen(found, "rate_offered", "rate_sent")
    if not terms:
        return None
    comparisons: tuple[Comparison, ...] = ()
    if len(terms) == 2:
        share = terms[1].value / terms[0].value
        terms = (*terms, worked_out("sent_share", share, "rate_sent / rate_offered", terms))
        comparisons = (compared(terms[2], "<", SENT_SHARE),)
    decides = judgement.branch == "sender"
    because = judgement.decision.reason if decides else "nothing says that it fell behind"
    question = "Did the load generator fall behind its own rate?"
    return ExplainStep(
        "sender", question, answer_of(judgement, "sender"), because, terms, comparisons
    )


def held_share(judgement: Judgement, found: Found) -> tuple[Term, ...]:
    """Return the queued share that no running step explains, and what it is made of."""
    terms = seen(found, "queue_wait_share", "step_wait_share", "queue_wait_share_worst")
    value = judgement.demand.held_share
    if value is None or "queue_wait_share" not in found:
        return ()
    formula = "queue_wait_share"
    if "step_wait_share" in found:
        formula = "max(0, queue_wait_share - step_wait_share)"
    if "queue_wait_share_worst" in found:
        formula = f"max({formula}, queue_wait_share_worst)"
    side = found["queue_wait_share"].side
    return (*terms, worked_out("held_share", value, formula, terms, side=side))


def explain_client(judgement: Judgement, found: Found, t: Thresholds) -> ExplainStep:
    """Explain whether less arrived than was offered."""
    question = "Was less in flight than the clients offered, with nothing waiting?"
    flight = seen(found, "in_flight", "in_flight_offered")
    held = held_share(judgement, found)
    if len(flight) < 2 or not held:
        because = "nobody told how many clients offered load, or where requests waited"
        return ExplainStep("client", question, "not observable", because, (*flight, *held))
    share = flight[0].value / flight[1].value
    arrived = worked_out("arrived_share", share, "in_flight / in_flight_offered", flight)
    comparisons = (
        compared(arrived, "<", t.client_share, "client_share"),
        compared(held[-1], "<", t.nothing_waits, "nothing_waits"),
    )
    decides = judgement.branch == "client"
    because = judgement.decision.reason if decides else "not both hold"
    terms = (*flight, arrived, *held)
    return ExplainStep(
        "client", question, answer_of(judgement, "client"), because, terms, comparisons
    )


def explain_front(judgement: Judgement, found: Found, t: Thresholds) -> ExplainStep:
    """Explain whether requests waited before the server counted them."""
    question = "Did requests wait in front of a server whose own queue is empty?"
    terms = seen(found, "ttft_in_front", "in_front_share", "frontend_cores")
    if not terms:
        because = "no client's TTFT stands beside the server's own, or the two hardly differ"
        return ExplainStep("front", question, "not observable", because)
    lines: dict[str, tuple[float, str | None]] = {
        "in_front_share": (t.queue_wait_share, "queue_wait_share"),
        "frontend_cores": (CORE_FULL, None),
    }
    comparisons = tuple(
        compared(term, "≥", *lines[term.name]) for term in terms if term.name in lines
    )
    if terms[-1].name == "frontend_cores":
        comparisons = (*comparisons, compared(terms[-1], "<", CORE_AT_REST, None))
    decides = judgement.branch == "front"
    because = "what passed in front is less than a fifth of a request, or the queue is not empty"
    because = judgement.decision.reason if decides else because
    answer = "decides" if decides else "passes on"
    return ExplainStep("front", question, answer, because, terms, comparisons)


def explain_load(judgement: Judgement, found: Found, t: Thresholds) -> ExplainStep:
    """Explain how the load was named."""
    question = "How much was asked: idle, underloaded, overloaded or served?"
    idle, held = seen(found, "idle_share"), held_share(judgement, found)
    comparisons = []
    if idle:
        comparisons.append(compared(idle[0], ">", t.idle_share, "idle_share"))
    if held:
        comparisons.append(compared(held[-1], "≥", t.queue_wait_share, "queue_wait_share"))
    if idle and held:
        comparisons.append(compared(idle[0], "≥", t.underloaded_share, "underloaded_share"))
        comparisons.append(compared(held[-1], "<", t.nothing_waits, "nothing_waits"))
    because, answer = f"the load is {judgement.load}", answer_of(judgement, "load")
    if judgement.demand.queued_share is None and judgement.load == "served":
        because, answer = "nothing tells what waited, so it counts as served", "not observable"
    elif judgement.demand.waiting_grows:
        because += "; the queue keeps growing, which alone makes it overloaded"
    if judgement.branch == "load":
        because += f": {judgement.decision.reason}"
    return ExplainStep("load", question, answer, because, (*idle, *held), tuple(comparisons))
