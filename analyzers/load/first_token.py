"""Whether those that wait in an engine's queue wait for their first token, or had it before."""

from __future__ import annotations

from stallscope.analyzers.benchmark.facts import client_trial, is_benchmark_only, latency
from stallscope.analyzers.load.demand import Demand
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.load.waits import Waits, preempted_inside, present
from stallscope.analyzers.measures import measure
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure
from stallscope.profiler.wording import counted, figure

MOST_BEGUN = 0.5  # less of the waiting than this before a first token: most had begun
_LONGER = 1.1  # than the benchmark: other requests than its own were served then


def first_token_wait(capture: Capture, demand: Demand, span: Span) -> Measure | None:
    """Return which share of the waiting can have been before a first token, at the most."""
    if demand.provenance == "measured" and any(r.preempted_ns for r in capture.requests):
        return _by_rows(capture, span)
    return _by_client(capture, demand, span)


def _by_rows(capture: Capture, span: Span) -> Measure | None:
    """Take all waits before admission, and of time put back what fits before the first token."""
    waits = Waits(())
    waited = before = 0
    for request in present(capture):
        put_back = preempted_inside(request, span)
        admitted, first = request.admitted_ns, request.first_token_ns
        whole = waits.all(request, span)
        waited += whole
        before += whole - put_back
        if put_back and admitted is not None:
            until = first if first is not None else span.end_ns
            before += min(put_back, span.overlap_ns(admitted, until))
    if not waited or before >= waited:
        return None
    source = "waits before admission, and put back before the first token, ÷ all waits"
    return measure("first_token_wait_share", before / waited, "bound", source, side="upper")


def _by_client(capture: Capture, demand: Demand, span: Span) -> Measure | None:
    """Take a client's word: its requests together spend N × mean TTFT before their first token.

    That holds wherever in the run it was. None where no engine told of waiting, or others than
    these were served.
    """
    trial = client_trial(capture)
    if trial is None or is_benchmark_only(capture) or not demand.waiting or trial.failed:
        return None
    mean, length_s = latency(trial, "ttft_s").mean, (span.end_ns - span.start_ns) / 1e9
    if not mean or not trial.completed or not trial.duration_s or length_s <= 0:
        return None
    if (demand.in_flight or 0.0) > trial.completed or length_s > _LONGER * trial.duration_s:
        return None
    share = min(1.0, trial.completed * mean / (demand.waiting * length_s))
    source = (
        f"{counted(trial.completed, 'request')} × their client's mean TTFT "
        f"{figure(mean)} s ÷ waiting × "
    )
    return measure("first_token_wait_share", share, "bound", f"{source}time", side="upper")


def most_have_begun(found: Measure | None) -> bool:
    """Tell whether most of those that wait had their first token already."""
    return found is not None and found.value < MOST_BEGUN


def begun_note(found: Measure | None) -> tuple[str, ...]:
    """Say that the queue is not what a first token waits for."""
    if found is None or not most_have_begun(found):
        return ()
    return (
        f"At most {figure(100 * found.value, 2)} % of the waiting was before a first token: most "
        "of those that wait have theirs already. The queue lengthens their output, not TTFT.",
    )
