"""How each part of a step's budget was found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.words import percent
from stallscope.profiler.evidence import Provenance

if TYPE_CHECKING:
    from stallscope.analyzers.step.budget import StepCost


def origin(
    name: str, seconds: float, cost: CostModel, costs: Sequence[StepCost]
) -> tuple[Provenance, str]:
    """Say how a part was found; what nothing recorded tells is a lower bound."""
    is_traced = bool(costs) and all(name in c.traced for c in costs)
    if name == "unexplained":
        return "derived", "step time − the parts above"
    if name == "host":
        return origin_of_host(costs)
    if name == "transfer" and costs and all(c.copied_s is not None for c in costs):
        return "measured", "copies that the recording marked"
    if name in ("communication", "transfer"):
        if is_traced:
            return "measured", "exposed time in the kernel trace"
        return _origin_of_moves(name, cost)
    roofline = f"roofline against the {cost.machine.kind} peak"
    probed = math.fsum(c.probed.get(name, 0.0) for c in costs)
    if not probed:
        return "estimated", roofline
    # Times that were measured at these shapes, multiplied and added up.
    source = cost.machine.linears_from
    if probed < 0.999 * seconds:
        source = f"{percent(probed / seconds)} {source}, the rest {roofline}"
    return ("derived" if 2 * probed >= seconds else "estimated"), source


def origin_of_host(costs: Sequence[StepCost]) -> tuple[Provenance, str]:
    """Say how the host's time was found; a bound is a lower one."""
    if all("host" in c.traced for c in costs):
        return "measured", "time without a kernel in the trace, or outside the forward call"
    known = [c.step.host_ns is not None for c in costs]
    less = ", less marked copies" if any(c.copied_s for c in costs) else ""
    if all(known):
        return "measured", f"step time outside the forward call, and gaps between steps{less}"
    if any(known):
        return "bound", "gaps between steps, and what was marked inside them"
    return "bound", "gaps between steps; time inside them was not marked"


def _origin_of_moves(name: str, cost: CostModel) -> tuple[Provenance, str]:
    machine = cost.machine
    if name == "transfer":
        if machine.transfer_s:
            return "estimated", "offloaded weights ÷ bandwidth of the link to the host"
        if machine.holds_all:
            return "derived", "weights and KV lie in the device's own memory"
        return "bound", "copies were not recorded"
    if machine.ranks == 1:
        return "derived", "one device"
    if machine.link_bytes_per_s:
        return "estimated", "all-reduce bytes ÷ link bandwidth"
    return "bound", "the link between the devices is not known"
