"""Linear kernels: the same numbers four ways, and which one is chosen."""

from __future__ import annotations

import pytest
import torch

from stallscope.runner.linear import Kernel, linear
from stallscope.runner.linear_choice import choose, fastest_kernel

WEIGHT = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
BIAS = torch.tensor([0.5, 0.0, -1.0])
KERNELS = ["aten", "mv", "widened"] + (["onednn"] if torch.backends.mkldnn.is_available() else [])


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("pack", [True, False])
def test_products(kernel: Kernel, pack: bool) -> None:
    plain = linear(WEIGHT, kernel=kernel, pack=pack)
    biased = linear(WEIGHT, BIAS, kernel=kernel, pack=pack)
    one, two = torch.tensor([[1.0, 10.0]]), torch.tensor([[1.0, 10.0], [0.0, 2.0]])
    assert plain(one).tolist() == [[21.0, 43.0, 65.0]]
    assert biased(one).tolist() == [[21.5, 43.0, 64.0]]
    assert plain(two).tolist() == [[21.0, 43.0, 65.0], [4.0, 8.0, 12.0]]
    assert biased(two).tolist() == [[21.5, 43.0, 64.0], [4.5, 8.0, 11.0]]
    assert plain(one[:0]).shape == (0, 3)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("bias", [None, BIAS])
def test_added_in_place(kernel: Kernel, bias: torch.Tensor | None) -> None:
    hidden = torch.tensor([[100.0, 200.0, 300.0]] * 2)
    rows = torch.tensor([[1.0, 10.0], [0.0, 2.0]])
    linear(WEIGHT, bias, kernel=kernel).add_to(hidden, rows)
    plain = [[121.0, 243.0, 365.0], [104.0, 208.0, 312.0]]
    biased = [[121.5, 243.0, 364.0], [104.5, 208.0, 311.0]]
    assert hidden.tolist() == (plain if bias is None else biased)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_many_rows_of_16_bit_add_up_in_32(dtype: torch.dtype) -> None:
    # 257 ones: in bf16, 8 bits of significand, 256 + 1 is 256 again.
    weight, bias = torch.ones((3, 257), dtype=dtype), torch.tensor([1.0, 3.0, -1.0], dtype=dtype)
    product = linear(weight, bias, kernel="widened")(torch.ones((8, 257), dtype=dtype))
    assert product.dtype == dtype
    assert product.tolist() == [torch.tensor([258.0, 260.0, 256.0], dtype=dtype).tolist()] * 8
    few = linear(weight, bias, kernel="widened")(torch.ones((7, 257), dtype=dtype))
    assert (few - product[:7]).abs().max() <= 2.0  # one step of bf16 there


def test_only_16_bit_is_widened() -> None:
    assert fastest_kernel(torch.float32, torch.device("cpu")) != "widened"


def test_a_close_race_goes_to_the_first() -> None:
    assert choose({"onednn": 114, "aten": 100, "mv": 101}) == "onednn"
    assert choose({"onednn": 116, "aten": 100, "mv": 101}) == "aten"
    assert choose({"aten": 200, "mv": 100}) == "mv"


def test_the_choice_holds_for_the_whole_process() -> None:
    cpu = torch.device("cpu")
    first = fastest_kernel(torch.float32, cpu)
    assert first in KERNELS
    assert {fastest_kernel(torch.float32, cpu) for _ in range(50)} == {first}


def test_a_gpu_uses_its_own_library() -> None:
    assert fastest_kernel(torch.float32, torch.device("cuda")) == "aten"
