"""Sizes as people write them."""

from __future__ import annotations

import pytest

from stallscope.errors import UsageError
from stallscope.sizes import parse_bytes


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("4096", 4096),
        ("1e9", 1_000_000_000),
        ("1.5e3", 1500),
        ("512KiB", 524_288),
        ("8MiB", 8_388_608),
        ("8mib", 8_388_608),
        ("1.5GiB", 1_610_612_736),
        ("1.5 GiB", 1_610_612_736),
        ("0.1MiB", 104_857),  # 104,857.6
        ("24GB", 24_000_000_000),
        ("2TiB", 2_199_023_255_552),
        ("7b", 7),
    ],
)
def test_size_is_read(text: str, size: int) -> None:
    assert parse_bytes(text, "--kv-budget") == size


@pytest.mark.parametrize(
    "text", ["", "GiB", "8M", "8 mebibytes", "-1", "nan", "inf", "1,5GiB", "0x10", "1e999", "1e-3"]
)
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^--kv-budget: '.*' is not a size; write a number"):
        parse_bytes(text, "--kv-budget")


@pytest.mark.parametrize("text", ["0", "0GiB", "0.4"])
def test_nothing_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="at least one byte"):
        parse_bytes(text, "--kv-budget")
