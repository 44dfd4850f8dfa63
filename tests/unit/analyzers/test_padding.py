"""Padding: priced like any other work, shown as nobody's, and never counted as a request's."""

from __future__ import annotations

import pytest
from capture_builders import ON_CPU, step

from stallscope.analyzers.cost.calibration import build_cost_model
from stallscope.analyzers.cost.roofline import CostModel
from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.padding import padding_note, padding_share
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.step.budget import cost_steps
from stallscope.profiler.capture import Capture, Step

# A prefill of 16 prompt tokens in 20 computed ones, and two decodes, the second with a row that has
# ended: it computes 2 tokens and reads 64 keys, half of each for nobody.
PREFILL = step(0, 0, 1, phase="prefill", padded_tokens=4, padded_context_tokens=4, padded_pairs=20)
FULL = step(1, 1, 1, padded_tokens=0, padded_context_tokens=0, padded_pairs=0)
HALF = step(2, 2, 1, padded_tokens=1, padded_context_tokens=32, padded_pairs=32, logit_rows=2)
STEPS = (PREFILL, FULL, HALF)
COST = build_cost_model(Capture(subject=ON_CPU))
assert isinstance(COST, CostModel)


def bare(padded: Step) -> Step:
    """The same step where nobody says how much of it was padding."""
    return padded._replace(padded_tokens=None, padded_context_tokens=None, padded_pairs=None)


def judged(*steps: Step) -> Diagnosis:
    return diagnose(Capture(subject=ON_CPU, steps=steps))


def value(diagnosis: Diagnosis, name: str) -> float:
    return next(m.value for m in diagnosis.measures if m.name == name)


def test_shares_by_hand() -> None:
    found = judged(*STEPS)
    assert value(found, "padding_share") == pytest.approx(5 / 23)  # 16 + 1 + 1 of 23 are real
    assert value(found, "padding_share_prefill") == pytest.approx(4 / 20)
    assert value(found, "padding_share_decode") == pytest.approx(1 / 3)


def test_the_budget_prices_what_was_computed() -> None:
    # Memory binds throughout. Padding adds 4 rows through seven linears of 64 + 64 elements, and in
    # attention 4 keys of 512 bytes and 4 rows of 2 · 64 elements.
    padded, plain = cost_steps((PREFILL, bare(PREFILL)), COST)
    more = sum((padded.floor or {}).values()) - sum((plain.floor or {}).values())
    added_bytes = 4 * 7 * 128 * 4 + 4 * 512 + 4 * 2 * 64 * 4
    assert more == pytest.approx(added_bytes / 294_912_000)


def test_its_time_is_the_difference_to_the_work_for_requests() -> None:
    # A padded row and 32 padded keys in one decode of three: 7 linears of 128 elements (its logit
    # row is counted either way), 32 · 512 bytes of KV, 2 · 64 elements of attention; 4 rows of
    # prompt padding as above.
    decode = 7 * 128 * 4 + 32 * 512 + 2 * 64 * 4
    prefill = 4 * 7 * 128 * 4 + 4 * 512 + 4 * 2 * 64 * 4
    expected = (decode + prefill) / 294_912_000 / 0.003
    assert value(judged(*STEPS), "padding_time_share") == pytest.approx(expected)


def test_model_flops_and_bytes_are_of_requests_alone() -> None:
    bare_half = bare(HALF)
    for name in ("mfu_decode", "mbu_decode"):
        assert value(judged(HALF), name) == value(judged(bare_half), name)


def test_it_is_said_in_one_sentence() -> None:
    (note,) = judged(*STEPS).notes
    assert note.startswith("22 % of the tokens computed were padding (prefill 20 %, decode 33 %)")


def test_no_padding_is_said_by_the_measure_alone() -> None:
    found = judged(FULL)
    assert (value(found, "padding_share"), found.notes) == (0.0, ())


def test_unknown_is_not_zero() -> None:
    known_in_part = cost_steps((FULL, bare(HALF)), None)
    assert padding_share(known_in_part) is None
    assert padding_note(known_in_part, None) == ()
    assert not [m for m in judged(bare(HALF)).measures if m.name.startswith("padding")]
