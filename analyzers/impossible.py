"""Whether model and device can be what ran at all: no step is quicker than its bytes and FLOPs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from stallscope.analyzers.cost.calibration import NoCostModel
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.load.sampled_work import sampled_costs
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.load.weights_read import weights_share
from stallscope.analyzers.step.budget import StepCost
from stallscope.profiler.capture import Capture

# Of the floor to the step. Below it an error of the count is as likely: experts that few tokens
# share, prompts found in a cache, weights that a cache holds.
IMPOSSIBLE = 1.25
_TAKES: Mapping[str, str] = {
    "weights": "reading these weights takes",
    "kv": "reading the KV cache takes",
    "compute": "the arithmetic takes",
    "communication": "communication takes",
}
_CHECK = "check --model, --gpu, --gpus and --dtype"
_DERIVED = ", and whether a step makes several tokens (speculative decoding)"


def why_impossible(
    capture: Capture, costs: Sequence[StepCost], cost: CostModel | None, span: Span
) -> NoCostModel | None:
    """Say by how much the least time of a step exceeds the steps' own; None where it may be.

    Only by a device's stated peaks: what a machine's own probes reached says nothing of its most.
    """
    if cost is None or cost.machine.kind != "datasheet":
        return None
    priced = [c for c in costs or sampled_costs(capture, cost, span) if c.floor is not None]
    time_s = math.fsum(c.time_s for c in priced)
    if not priced or not time_s:
        return _by_rate(capture, cost, span)
    parts = {part: math.fsum((c.floor or {}).get(part, 0.0) for c in priced) for part in _TAKES}
    times = math.fsum(parts.values()) / time_s
    if times <= IMPOSSIBLE:
        return None
    first = max(parts, key=parts.__getitem__)
    alone = parts[first] / time_s
    what = _TAKES[first] if alone > IMPOSSIBLE else "bytes and FLOPs of a step take"
    return _wrong(capture, what, alone if alone > IMPOSSIBLE else times)


def _by_rate(capture: Capture, cost: CostModel, span: Span) -> NoCostModel | None:
    """Judge by how often weights were read, where gauges are all there is."""
    share = weights_share(capture, cost, span)
    if share is None or share <= IMPOSSIBLE:
        return None
    return _wrong(capture, _TAKES["weights"], share)


def _wrong(capture: Capture, what: str, times: float) -> NoCostModel:
    """Name the contradiction; a step that nobody recorded follows from the tokens made."""
    reason = f"what was said of the model and its device cannot be right: {what} {times:.1f} times "
    how = _CHECK if capture.steps else _CHECK + _DERIVED
    return NoCostModel(f"{reason}as long as a step took", how, is_contradiction=True)
