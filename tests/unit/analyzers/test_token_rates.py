"""Tokens a second of each phase, by hand."""

from __future__ import annotations

import pytest
from step_rows import decode, prefill

from stallscope.analyzers.step.budget import StepCost
from stallscope.analyzers.token_rates import token_rates


def rates(*steps) -> dict[str, float]:  # type: ignore[no-untyped-def]
    costs = [StepCost(s, (s.end_ns - s.start_ns) * 1e-9, 0.0, None) for s in steps]
    return {m.name: m.value for m in token_rates(costs)}


def test_tokens_over_the_time_of_their_phase() -> None:
    """512 prompt tokens in 100 ms; 4 + 4 + 2 tokens in 60 ms."""
    found = rates(
        prefill(0, 100, 512),
        *(
            decode(100 + 20 * i, 120 + 20 * i, 99, decode_requests=n)
            for i, n in enumerate((4, 4, 2))
        ),
    )
    assert found == {
        "prefill_tokens_per_s": pytest.approx(5120),
        "decode_tokens_per_s": pytest.approx(10 / 0.06),
    }


def test_a_step_that_does_not_say_how_much_it_holds_leaves_the_rate_unknown() -> None:
    assert rates(decode(0, 10, 5), decode(10, 20, 5, logit_rows=None)) == {}
    assert rates() == {}
