"""What preemption cost: prompts prefilled again, and requests put back into the queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.load.engines import risen
from stallscope.analyzers.load.preempted import preempted
from stallscope.analyzers.load.put_back import put_back
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.load.waits import preempted_inside, present, stay
from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.step.decode_share import from_engine
from stallscope.profiler.capture import Capture, Request

_PHASES = ("prefill", "decode", "mixed")


@dataclass(frozen=True, slots=True)
class Preemption:
    """Its cost in a span, as parts of step time and of the requests' time; None is not known."""

    recompute_share: float | None
    wait_share: float | None

    @property
    def cost(self) -> float:
        """The time lost to it, as far as it is known."""
        return (self.recompute_share or 0.0) + (self.wait_share or 0.0)


def count_preemptions(capture: Capture) -> int | None:
    """Count preemptions by request rows, else by events or the engines' counters; None untold."""
    counts = [r.preemptions for r in capture.requests if r.preemptions is not None]
    if counts:
        return sum(counts)
    events = preempted(capture.events)
    counted = risen(capture.engine_samples, "preemptions_total")
    return events or (None if counted is None else round(counted))


def preempts(capture: Capture) -> bool:
    """Tell whether anything was preempted, as counted or by the gauges."""
    return bool(count_preemptions(capture)) or bool(put_back(capture.engine_samples))


def _prefilled_once(request: Request, span: Span, run_end_ns: int) -> float:
    """Return the tokens of a prompt that were due inside a span: spread over its prefill."""
    start = request.admitted_ns
    if start is None:
        start = request.arrival_ns if request.first_token_ns is not None else None
    if start is None:
        return 0.0
    known = (t for t in (request.first_token_ns, request.end_ns) if t is not None)
    end = next(known, max(start, run_end_ns))
    tokens = request.input_tokens - (request.cached_tokens or 0)
    if end <= start:
        return float(tokens) if span.start_ns <= start < span.end_ns else 0.0
    return tokens * span.overlap_ns(start, end) / (end - start)


def recomputed_tokens(capture: Capture, costs: Sequence[StepCost], span: Span) -> int | None:
    """Return the tokens prefilled beyond the prompts that were admitted; None where not known.

    A prompt that was admitted and not finished counts whole, so this is the least.
    """
    prefilled = sum(c.step.prefill_tokens for c in costs)
    if not capture.requests or not prefilled:
        return None
    run_end_ns = max(c.step.end_ns for c in costs)
    once = sum(_prefilled_once(r, span, run_end_ns) for r in capture.requests)
    again = round(prefilled - once)
    is_hidden = any(r.cached_tokens is None for r in capture.requests) and again <= 0
    return None if is_hidden else max(0, again)


def observe_preemption(
    capture: Capture, costs: Sequence[StepCost], cost: CostModel | None, span: Span
) -> Preemption | None:
    """Price preemption in a span by the steps in it; None where nothing was preempted."""
    if not count_preemptions(capture):
        return None
    return Preemption(_recompute_share(capture, costs, cost, span), _wait_share(capture, span))


def _recompute_share(
    capture: Capture, costs: Sequence[StepCost], cost: CostModel | None, span: Span
) -> float | None:
    again = recomputed_tokens(capture, costs, span)
    engine = from_engine(costs, cost)
    if again is None or engine is None:
        return None
    total = sum(c.time_s for c in costs)
    prefill = (1.0 - engine.value) * sum(c.time_s for c in costs if c.step.phase in _PHASES)
    return again / sum(c.step.prefill_tokens for c in costs) * prefill / total


def _wait_share(capture: Capture, span: Span) -> float | None:
    requests = present(capture)
    in_system = sum(stay(r, span) for r in requests)
    if not in_system or all(r.preempted_ns is None for r in requests):
        return None
    return sum(preempted_inside(r, span) for r in requests) / in_system
