"""Token choice: distributions worked out by hand, and draws that follow them."""

from __future__ import annotations

import math

import pytest
import torch

from stallscope.errors import UsageError
from stallscope.runner.token_sampling import Sampler, Sampling, probabilities

CPU = torch.device("cpu")
LOGITS = torch.tensor([[0.15, 0.5, 0.1, 0.25]]).log()


@pytest.mark.parametrize(
    ("sampling", "expected"),
    [
        (Sampling(1.0), [0.15, 0.5, 0.1, 0.25]),
        (Sampling(1.0, top_k=2), [0.0, 2 / 3, 0.0, 1 / 3]),
        (Sampling(1.0, top_k=9), [0.15, 0.5, 0.1, 0.25]),
        (Sampling(1.0, top_p=0.7), [0.0, 2 / 3, 0.0, 1 / 3]),  # 0.5 is too little, 0.75 enough
        (Sampling(1.0, top_p=0.8), [0.15 / 0.9, 0.5 / 0.9, 0.0, 0.25 / 0.9]),
        (Sampling(1.0, top_p=0.01), [0.0, 1.0, 0.0, 0.0]),
        # top_k first: 0.15, 0.5, 0.25 become 1/6, 5/9, 5/18; then 5/9 < 0.6 <= 5/9 + 5/18
        (Sampling(1.0, top_k=3, top_p=0.6), [0.0, 2 / 3, 0.0, 1 / 3]),
        # temperature 0.5 squares: 0.0225, 0.25, 0.01, 0.0625, of 0.345
        (Sampling(0.5), [0.0225 / 0.345, 0.25 / 0.345, 0.01 / 0.345, 0.0625 / 0.345]),
    ],
)
def test_probabilities(sampling: Sampling, expected: list[float]) -> None:
    assert probabilities(LOGITS, sampling)[0].tolist() == pytest.approx(expected, abs=1e-6)


def test_greedy_takes_the_largest_of_each_row() -> None:
    logits = torch.tensor([[0.0, 3.0, 1.0], [2.0, -1.0, 1.9]])
    assert Sampler(Sampling(), CPU).sample(logits) == [1, 0]


def test_draws_follow_the_distribution() -> None:
    count = 20_000
    tokens = Sampler(Sampling(1.0, top_k=3, seed=5), CPU).sample(LOGITS.expand(count, 4))
    for token, share in ((0, 1 / 6), (1, 5 / 9), (3, 5 / 18)):
        deviation = math.sqrt(share * (1 - share) / count)
        assert abs(tokens.count(token) / count - share) < 4 * deviation
    assert tokens.count(2) == 0


def test_a_seed_repeats_its_draws() -> None:
    logits = torch.zeros(50, 100)
    first, second, other = (
        Sampler(Sampling(1.0, seed=seed), CPU).sample(logits) for seed in (1, 1, 2)
    )
    assert first == second
    assert first != other


def test_half_precision_logits_are_drawn_in_full() -> None:
    weights = probabilities(LOGITS.to(torch.bfloat16), Sampling(1.0))
    assert weights.dtype == torch.float32
    assert weights.sum().item() == pytest.approx(1.0, abs=1e-6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"temperature": -1.0}, "temperature -1.0"),
        ({"temperature": math.inf}, "temperature inf"),
        ({"top_k": 0}, "top-k 0"),
        ({"top_p": 0.0}, "top-p 0.0"),
        ({"top_p": 1.5}, "top-p 1.5"),
    ],
)
def test_senseless_settings_are_refused(arguments: dict[str, float], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Sampling(**arguments)  # type: ignore[arg-type]
