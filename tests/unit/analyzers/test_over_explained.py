"""A phase explained to more than its time is said, and caps what stands on the same speeds."""

from __future__ import annotations

import dataclasses

import pytest
from test_step_limit import T, budget

from stallscope.analyzers.result import PhaseBudget
from stallscope.analyzers.step.limit import limit_of_budget
from stallscope.analyzers.step.over_explained import over_explained, phases_note, with_phases

PROBED = "roofline against the achievable peak"


def phases(prefill: float, share: float = 0.324, source: str = PROBED) -> tuple[PhaseBudget, ...]:
    """Prefill explained to `prefill` in a `share` of the time, decode to 0.78 in the rest."""
    whole = prefill * share + 0.78 * (1.0 - share)
    rows = (("prefill", prefill, share), ("decode", 0.78, 1.0 - share), ("all", whole, 1.0))
    return tuple(
        dataclasses.replace(budget(source, compute=compute), phase=phase, share=part)
        for phase, compute, part in rows
    )


@pytest.mark.parametrize(
    ("prefill", "share", "is_wrong"),
    [
        (1.234, 0.324, True),
        (1.11, 0.324, True),
        (1.09, 0.324, False),
        (1.234, 0.06, True),
        (1.234, 0.04, False),  # too short to move the sum
    ],
)
def test_a_tenth_over_in_a_phase_that_counts(prefill: float, share: float, is_wrong: bool) -> None:
    assert [b.phase for b in over_explained(phases(prefill, share))] == ["prefill"] * is_wrong


def test_the_sum_in_which_it_cancels_is_less_sure() -> None:
    # 1.234 · 0.324 + 0.78 · 0.676 = 0.927: 7 % unexplained of the whole, −23 % of prefill.
    found = phases(1.234)
    decision = limit_of_budget(found[-1], T)
    assert decision.bottleneck == "compute"
    assert decision.unexplained == pytest.approx(0.073, abs=5e-4)
    told = with_phases(decision, found)
    assert (told.bottleneck, told.cap) == ("compute", 0.5)
    assert told.reason.endswith(", yet the same speeds explain prefill to 123 % of its time")
    assert with_phases(decision, phases(1.0)) == decision


def test_what_no_speed_decided_keeps_its_confidence() -> None:
    decision = limit_of_budget(budget(host=0.6), T)
    assert with_phases(decision, phases(1.234)) == decision


def test_the_note_names_the_speed_and_its_source() -> None:
    (note,) = phases_note(phases(1.234))
    assert "prefill: its parts are 123 % of its measured time" in note
    assert "the probed peak of arithmetic was too low" in note
    (sheet,) = phases_note(phases(1.234, source="roofline against the datasheet peak"))
    assert "the datasheet's peak of arithmetic" in sheet
    assert phases_note(phases(1.0)) == ()


def test_a_phase_alone_is_its_own_sum() -> None:
    assert over_explained(phases(1.234)[:1]) == ()
