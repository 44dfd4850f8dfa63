"""Recurring steps: planted ones are found through noise, random sequences and layers are not."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallscope.profiler.trace.recurring import best_cut, recurring_steps
from stallscope.profiler.trace.timeline import Kernels, SmallInts

EMBEDDING, ARGMAX = 0, 1
OF_PASSES = np.array([EMBEDDING, ARGMAX], dtype=np.int32)
FIRST_OF_LAYER, STRANGER = 10, 90


def one_pass(layers: int, per_layer: int) -> list[int]:
    """Look tokens up, go through the layers, norm, project, pick."""
    layer = list(range(FIRST_OF_LAYER, FIRST_OF_LAYER + per_layer))
    return [EMBEDDING, *(layer * layers), 2, 3, ARGMAX]


def with_noise(names: list[int], share: float, seed: int) -> SmallInts:
    """Drop, insert and replace that share of the names in all."""
    random = np.random.default_rng(seed)
    kept: list[int] = []
    for name in names:
        drawn = random.random()
        if drawn < share / 3:
            continue
        if drawn < share * 2 / 3:
            kept.append(STRANGER)
        kept.append(STRANGER + 1 if drawn > 1 - share / 3 else name)
    return np.array(kept, dtype=np.int32)


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 30), st.integers(3, 10), st.integers(12, 40), st.integers(0, 10**6))
def test_planted_steps_are_found_through_noise(
    layers: int, per_layer: int, steps: int, seed: int
) -> None:
    step = one_pass(layers, per_layer)
    cut = best_cut(with_noise(step * steps, 0.02, seed), OF_PASSES)
    assert cut is not None
    assert cut.length == pytest.approx(len(step), rel=0.05, abs=1)
    assert steps / 3 < cut.is_alike.sum() <= steps  # of 28 names, 2 % noise leaves 57 % untouched


@settings(deadline=None, max_examples=60)
@given(st.integers(1, 30), st.integers(3, 10), st.integers(5, 40))
def test_steps_without_noise_are_all_found(layers: int, per_layer: int, steps: int) -> None:
    step = one_pass(layers, per_layer)
    cut = best_cut(np.array(step * (steps + 1), dtype=np.int32), OF_PASSES)
    assert cut is not None
    assert (cut.length, int(cut.is_alike.sum()), cut.coverage) == (len(step), steps + 1, 1.0)


@settings(deadline=None, max_examples=200)
@given(st.integers(2, 30), st.integers(0, 600), st.integers(0, 10**6))
def test_random_sequences_hold_no_step(different: int, length: int, seed: int) -> None:
    names = np.random.default_rng(seed).integers(0, different, length).astype(np.int32)
    assert best_cut(names, np.arange(different, dtype=np.int32)) is None


def test_the_layers_of_a_single_pass_are_no_steps() -> None:
    assert best_cut(np.array(one_pass(36, 12), dtype=np.int32), OF_PASSES) is None


def test_what_comes_every_fourth_step_makes_no_longer_one() -> None:
    step = one_pass(4, 5)
    names = np.array((step * 3 + [50, *step]) * 8, dtype=np.int32)
    cut = best_cut(names, OF_PASSES)
    assert cut is not None
    assert (cut.length, int(cut.is_alike.sum())) == (len(step), 32)


def test_four_repeats_are_too_few() -> None:
    assert best_cut(np.array(one_pass(3, 4) * 4, dtype=np.int32), OF_PASSES) is None


def test_steps_in_under_sixty_per_cent_of_the_kernels_are_too_few() -> None:
    step = one_pass(2, 4)  # 12 kernels, 10 times; 79 others leave 60.3 %, 81 leave 59.7 %
    others = np.random.default_rng(1).permutation(200)[:81] + 100
    few = np.concatenate((others[:79], step * 10)).astype(np.int32)
    many = np.concatenate((others, step * 10)).astype(np.int32)
    assert best_cut(few, OF_PASSES) is not None
    assert best_cut(many, OF_PASSES) is None


NAMES = ("embedding_kernel", "ArgMaxOps", "rotary_embedding", "gemm", "norm", "copy")


def kernels(sequence: list[int], pauses_before: dict[int, int], *, launched: bool) -> Kernels:
    """Kernels of 10 ns each, one behind the other, with pauses before those of certain names."""
    starts, now = [], 0
    for name in sequence:
        now += pauses_before.get(name, 0)
        starts.append(now)
        now += 10
    start_ns = np.array(starts, dtype=np.int64)
    count = len(sequence)
    return Kernels(
        start_ns,
        start_ns + 10,
        np.full(count, 1, dtype=np.int32),
        np.zeros(count, dtype=np.int32),
        np.array(sequence, dtype=np.int32),
        start_ns - 5 if launched else np.full(count, -1, dtype=np.int64),
        np.zeros(count, dtype=np.int32),
        np.full(count, -1, dtype=np.int64),
    )


@pytest.mark.parametrize("launched", [True, False])
def test_a_step_begins_behind_the_loops_pause(launched: bool) -> None:
    # Six kernels, 60 ns, then 40 ns in which the host picks the token: a step every 100 ns.
    found = recurring_steps(kernels([0, 4, 3, 2, 3, 1] * 9, {0: 40}, launched=launched), NAMES)
    assert found is not None
    assert found.start_ns.tolist() == [40 + 100 * i for i in range(9)][: len(found)]
    assert (found.end_ns - found.start_ns).tolist() == [60] * len(found)
    assert len(found) >= 8
    assert (found.device, found.kernels_per_step, found.coverage) == (1, 6, 1.0)
    assert found.evidence.endswith(
        f"comes once in {len(found)} alike stretches of about 6 kernels; stretches of this kind "
        "hold 100% of all"
    )


def test_without_a_kernel_that_comes_once_a_pass_nothing_is_said() -> None:
    assert recurring_steps(kernels([2, 3, 4, 5] * 40, {2: 40}, launched=True), NAMES) is None


def test_no_kernels_hold_no_steps() -> None:
    assert recurring_steps(kernels([], {}, launched=True), NAMES) is None
