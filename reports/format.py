"""Numbers as people read them: units, rounding, and the word for where a number comes from."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from stallscope.profiler.evidence import BoundSide, Measure
from stallscope.profiler.wording import figure

UNKNOWN = "not known"
_MINUS = "\N{MINUS SIGN}"
_SI = (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3), ("", 1.0))
_BINARY = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1))
_TIME = (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9))
_ONE_WAY = {"lower": "at least", "upper": "at most"}


def listed(names: Sequence[str]) -> str:
    """Join names: "a", "a and b", "a, b and c"."""
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def number(value: float) -> str:
    """Return a whole number as it is, else three significant digits; thousands are separated."""
    if not math.isfinite(value):
        return UNKNOWN
    if value == math.floor(value):
        return _signed(value, f"{abs(value):,.0f}")
    return _signed(value, _magnitude(abs(value)))


def seconds(value: float) -> str:
    """Return a duration in s, ms, µs or ns."""
    return _scaled(value, _TIME)


def bytes_size(value: float) -> str:
    """Return a memory size in binary units, exactly where five digits tell it all."""
    if not math.isfinite(value):
        return UNKNOWN
    size = abs(value)
    unit, factor = next((u for u in _BINARY if size >= u[1]), _BINARY[-1])
    scaled = size / factor
    text = f"{scaled:.4f}".rstrip("0").rstrip(".") if _is_exact(scaled) else number(scaled)
    return _signed(value, f"{text} {unit}")


def si(value: float, unit: str) -> str:
    """Return a rate or an amount in decimal SI: 1.56 TB/s, 312 TFLOP/s."""
    if abs(value) < 1:
        return f"{number(value)} {unit}"
    return _scaled(value, tuple((prefix + unit, factor) for prefix, factor in _SI))


def percent(fraction: float) -> str:
    """Return a fraction as per cent with one decimal; never round to a false 0 or 100."""
    if not math.isfinite(fraction):
        return UNKNOWN
    if fraction in (-1, 0, 1):
        return _signed(fraction, f"{abs(fraction) * 100:.0f} %")
    size = abs(fraction) * 100
    if size < 0.05:
        return "< 0.1 %" if fraction > 0 else f"> {_MINUS}0.1 %"
    if 99.95 <= size < 100:
        return _signed(fraction, "99.9 %")
    return _signed(fraction, f"{size:,.1f} %")


def rough_percent(fraction: float) -> str:
    """Return a fraction that is itself an estimate (a confidence, an error) in whole per cent."""
    return f"{fraction * 100:.0f} %" if math.isfinite(fraction) else UNKNOWN


def intensity(flop_per_byte: float) -> str:
    """Return an arithmetic intensity: two decimals below 10, one above."""
    if not math.isfinite(flop_per_byte):
        return UNKNOWN
    return f"{flop_per_byte:,.{2 if flop_per_byte < 9.995 else 1}f}"


def quantity(value: float, unit: str) -> str:
    """Return a value in the form that its unit asks for."""
    shape = _SHAPES.get(unit)
    if shape is not None:
        return shape(value)
    if not math.isfinite(value):
        return UNKNOWN
    text = number(value)
    return f"{text} {_ONE.get(unit, unit) if text == '1' else unit}".rstrip()


def exact(value: float, unit: str) -> str:
    """Return a value to be reckoned with: four digits or more, fractions as they are."""
    if not math.isfinite(value):
        return UNKNOWN
    return f"{figure(value, 4)} {unit}".removesuffix(" fraction").rstrip()


# Of one, units are named in the singular.
_ONE = {
    "requests": "request",
    "requests/s": "request/s",
    "tokens": "token",
    "tokens/s": "token/s",
    "cores": "core",
}


def provenance(kind: str, side: BoundSide | None = None) -> str:
    """Return the mark beside a number: where it comes from, and which way a bound reads."""
    return f"{_ONE_WAY[side]} ({kind})" if side else kind


def measure(item: Measure) -> str:
    """Return a measure's value and its mark, for running text."""
    return f"{quantity(item.value, item.unit)}, {provenance(item.provenance, item.side)}"


def _magnitude(size: float) -> str:
    rounded = float(f"{size:.3g}")  # rounding first: 99.96 is 100, not 100.0
    if rounded >= 100:
        return f"{size:,.0f}"
    if rounded >= 0.001:
        digits = 2 - math.floor(math.log10(rounded))
        return f"{rounded:.{digits}f}"
    return figure(rounded)


def _scaled(value: float, units: tuple[tuple[str, float], ...]) -> str:
    if not math.isfinite(value):
        return UNKNOWN
    if value == 0:
        return f"0 {next(unit for unit, factor in units if factor == 1.0)}"
    size = float(f"{abs(value):.3g}")
    unit, factor = next((u for u in units if size >= u[1]), units[-1])
    return _signed(value, f"{_magnitude(abs(value) / factor)} {unit}")


def _signed(value: float, text: str) -> str:
    return _MINUS + text if value < 0 else text


def _is_exact(value: float) -> bool:
    return float(f"{value:.5g}") == value


_SHAPES: dict[str, Callable[[float], str]] = {
    "": number,
    "1": number,
    "count": number,
    "s": seconds,
    "bytes": bytes_size,
    "B": bytes_size,
    "fraction": percent,
    "share": percent,
    "B/s": lambda value: si(value, "B/s"),
    "bytes/s": lambda value: si(value, "B/s"),
    "FLOP/B": lambda value: f"{intensity(value)} FLOP/B",
    "FLOP": lambda value: si(value, "FLOP"),
    "FLOP/s": lambda value: si(value, "FLOP/s"),
}
