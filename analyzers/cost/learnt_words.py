"""What a calibration rests on, in words."""

from __future__ import annotations

from stallscope.analyzers.words import percent
from stallscope.profiler.spec import Calibration

_SHOWN = 0.005  # of less a percentage would round to none, and nothing misses by nothing


def learnt_from(fitted: Calibration) -> str:
    """Say what it was fitted on."""
    runs = "1 run" if fitted.captures == 1 else f"{fitted.captures} runs"
    usual = "usual step" if fitted.steps == 1 else "usual steps"
    kinds = "one of each phase" if fitted.step_s is None else "one of each batch size"
    return f"{fitted.steps} {usual} of {runs}, {kinds}{_of_all(fitted.recorded)}"


def _of_all(recorded: int | None) -> str:
    """Say of how many steps those were picked; a file of an earlier version does not tell."""
    return "" if recorded is None else f" out of {recorded:,}"


def how_far_off(fitted: Calibration) -> str:
    """Say how far it missed, or what would tell: a fit follows what it was fitted on."""
    if fitted.is_tested:
        left_out = "runs" if fitted.step_s is None else "batch sizes"
        miss = "under 1 %" if fitted.error < _SHOWN else percent(fitted.error)
        return f"mean miss {miss} on {left_out} left out of it"
    needed = "three runs" if fitted.step_s is None else "steps of three batch sizes"
    return f"too few to tell how far it misses: give {needed} or more"
