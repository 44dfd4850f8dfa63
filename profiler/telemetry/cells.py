"""The cells of GPU telemetry: a number with its unit, or the tool's word for having none."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache

# A number with a decimal point, or a decimal comma as nvidia-smi prints it on some Windows systems;
# neither tool groups thousands.
_NUMBER = re.compile(r"([-+]?\d+(?:[.,]\d+)?(?:[eE][-+]?\d+)?)\s*([%°A-Za-zµ/]*)")
_HEX = re.compile(r"0[xX][0-9A-Fa-f]{1,16}")

PERCENT = 0.01  # divided by 100 instead, which is exact where it can be
# Our unit, and by how much each of the tools' units is multiplied to become it. What nvidia-smi
# called MB before driver 331 was MiB already.
SCALES: Mapping[str, Mapping[str, float]] = {
    "bytes": {"B": 1, "KiB": 2**10, "MiB": 2**20, "MB": 2**20, "GiB": 2**30},
    "fraction": {"%": PERCENT, "1": 1},
    "mW": {"mW": 1, "W": 1e3, "kW": 1e6},
    "mJ": {"mJ": 1, "J": 1e3},
    "Hz": {"Hz": 1, "kHz": 1e3, "MHz": 1e6, "GHz": 1e9},
    "°C": {"C": 1, "°C": 1},
    "B/s": {"B/s": 1, "KB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9},
    "bitmask": {"1": 1},
}
# Beyond these a value is a placeholder or damage: DCGM's blanks are 2³¹ − 16, 2⁴⁷ and 2⁶³ − 16.
_MOST: Mapping[str, float] = {
    "bytes": 2.0**45,
    "fraction": 1.01,
    "mW": 1e8,
    "mJ": 2.0**53,
    "Hz": 1e11,
    "°C": 200.0,
    "B/s": 1e13,
    "bitmask": float(0xFFFF),
}
_LEAST: Mapping[str, float] = {"°C": -60.0}
_UNITS = frozenset(unit for scales in SCALES.values() for unit in scales) - {"1"}
MOST_LONG = 64  # letters of a number with its unit, or of a word for none
_DCGM_BLANKS = (2.0**31 - 16, 2.0**47, 2.0**63 - 16)
_BLANK_KINDS = 16  # "not supported", "no permission", … stand just above each blank


def in_unit(text: str, unit: str, stated: str) -> float | None:
    """Return a cell's number in one of our units; None for a word, or what cannot be.

    `stated` is the unit of a cell that names none itself. A fraction a little above 1 is 1.
    """
    return _in_unit(text, unit, stated) if len(text) <= MOST_LONG else None


@lru_cache(maxsize=1 << 16)  # a long file says the same few values again and again
def _in_unit(text: str, unit: str, stated: str) -> float | None:
    if unit == "bitmask" and _HEX.fullmatch(text.strip()):
        return _within(float(int(text.strip(), 16)), unit)
    number, blank, own = text.partition(" ")
    if not _is_plain(number) or (blank and own not in _UNITS):
        found = _NUMBER.fullmatch(text.strip())
        if found is None:
            return None
        number, own = found[1].replace(",", "."), found[2]
    scale = SCALES[unit].get(own or stated)
    value = float(number)
    if scale is None or not math.isfinite(value) or _is_blank(value):
        return None
    return _within(value / 100 if scale == PERCENT else value * scale, unit)


def _is_plain(number: str) -> bool:
    """Tell what is digits with a point among them at the most, which needs no pattern."""
    is_plain = number.isascii() and number.replace(".", "", 1).isdecimal()
    return is_plain and number[0] != "." and number[-1] != "."


def _is_blank(value: float) -> bool:
    return any(blank <= value < blank + _BLANK_KINDS for blank in _DCGM_BLANKS)


def _within(value: float, unit: str) -> float | None:
    if not _LEAST.get(unit, 0.0) <= value <= _MOST[unit]:
        return None
    return min(1.0, value) if unit == "fraction" else value
