"""How fast a server reads its weights, by its gauges alone: a lower bound of memory traffic."""

from __future__ import annotations

from itertools import pairwise

from stallscope.analyzers.cost.arithmetic import step_weight_bytes
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.load.engines import Moment, Values, moments
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.step.indicators import FEW_ROWS
from stallscope.analyzers.step.limit import Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.analyzers.words import percent
from stallscope.profiler.capture import Capture


def weights_share(capture: Capture, cost: CostModel, span: Span) -> float | None:
    """Return weight bytes read ÷ time × bandwidth while one engine only decodes; None if never.

    A step makes one token for each running request and reads every weight once; KV reads come on
    top. Counted are stretches without prompts in which as many run at the end as at the start.
    """
    steps, seconds = 0.0, 0.0
    for now, after in pairwise(moments(capture.engine_samples)):
        inside_s = span.overlap_ns(now.start_ns, now.start_ns + now.duration_ns) * 1e-9
        rate = _steps_per_s(now, after)
        if rate is not None and inside_s:
            steps, seconds = steps + rate * inside_s, seconds + inside_s
    if not seconds:
        return None
    read = step_weight_bytes(cost.spec, cost.dtype) / cost.machine.ranks
    return steps / seconds * read / cost.machine.bytes_per_s


def _steps_per_s(now: Moment, after: Moment) -> float | None:
    if len(now.engines) != 1 or now.engines.keys() != after.engines.keys():
        return None
    (values,), (later,) = now.engines.values(), after.engines.values()
    running = values["running"]
    if not 0 < running <= FEW_ROWS or running != later["running"]:
        return None
    made = _rise(values, later, "output_tokens_total")
    if not made or _rise(values, later, "input_tokens_total") != 0:
        return None
    return made / running / (now.duration_ns * 1e-9)


def _rise(values: Values, later: Values, name: str) -> float | None:
    return later[name] - values[name] if name in values and name in later else None


def decide_by_weights(
    capture: Capture, cost: CostModel | None, span: Span, t: Thresholds
) -> Decision | None:
    """Call the step bound by bandwidth where reading weights alone takes enough of it."""
    share = None if cost is None else weights_share(capture, cost, span)
    if share is None or not t.dram_bound <= share <= 1.0:
        return None
    reason = f"while it only decodes, reading the weights once a step takes {percent(share)} of "
    reason += "memory bandwidth alone"
    return Decision("bandwidth", share, 0.0, None, 1.0 - share, 0.7, reason, cap=0.85)
