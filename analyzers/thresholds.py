"""The lines that rules compare with; a TOML file can move each of them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Fractions 0 to 1. The first seven are the document's (section 3.4) or its wording made
    numeric; the rest belong to the verdict procedure."""

    near_limit: float = 0.95  # memory use "near the limit"
    sm_low: float = 0.30
    dram_high: float = 0.80
    queue_wait_share: float = 0.20  # "serious queueing", of end-to-end time
    utilisation_not_high: float = 0.70
    decode_share: float = 0.90
    idle_share: float = 0.90  # above: nobody asked for anything
    underloaded_share: float = 0.50
    nothing_waits: float = 0.05  # a queued share below this is arrivals falling inside a step
    limit_share: float = 0.40  # the largest part of the step must reach this …
    limit_margin: float = 1.25  # … and be this many times the next
    model_error: float = -0.05  # unexplained below this share of the step: the model is wrong
    explained_share: float = 0.75  # floor + host above this share of the step explain it
    clock_deficit: float = 0.10  # clocks less than this below nominal are not slow
    core_wait: float = 0.25  # of a step, in which others had the cores that it needed
    small_gain: float = 0.10  # a gain under this is said in the headline
    kernel_idle: float = 0.50  # device idle in a kernel trace's steady window
    dram_bound: float = 0.60
    tensor_low: float = 0.30
    tensor_bound: float = 0.60
    kernel_class_share: float = 0.60
    client_share: float = 0.50  # in flight below this share of what is offered
