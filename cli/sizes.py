"""Sizes in bytes as people write them: 4096, 1e9, 512KiB, 8MiB, 1.5GiB, 24GB."""

from __future__ import annotations

import re

from stallscope.errors import UsageError

UNITS = {"": 1, "b": 1} | {
    f"{letter}{suffix}": base**power
    for power, letter in enumerate("kmgt", start=1)
    for suffix, base in (("b", 1000), ("ib", 1024))
}
PATTERN = re.compile(r"\s*(\d+(?:\.\d*)?(?:e\+?\d{1,2})?)\s*([a-z]*)\s*", re.IGNORECASE)


def parse_bytes(text: str, option: str) -> int:
    """Return the bytes that a size like 1.5GiB means; fractions of a byte are dropped.

    KB, MB, GB, TB are decimal; KiB, MiB, GiB, TiB are binary; a bare number is bytes.
    """
    from decimal import Decimal

    match = PATTERN.fullmatch(text)
    unit = match[2].lower() if match else None
    if match is None or unit not in UNITS:
        raise UsageError(
            f"{option}: {text!r} is not a size; write a number of bytes or a unit: "
            "4096, 512KiB, 8MiB, 1.5GiB, 24GB"
        )
    size = int(Decimal(match[1]) * UNITS[unit])
    if size <= 0:
        raise UsageError(f"{option}: a size must be at least one byte, not {text!r}")
    return size
