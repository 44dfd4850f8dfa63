"""Numbers as people read them."""

from __future__ import annotations

import math

import pytest

from stallscope.profiler.evidence import Measure
from stallscope.reports import format as fmt


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (6.45, "6.45 s"),
        (6400.4, "6,400 s"),
        (0.025, "25.0 ms"),
        (0.000_999_96, "1.00 ms"),  # 999.96 µs rounds up into the next unit
        (0.000_600, "600 µs"),
        (4.8e-6, "4.80 µs"),
        (5e-7, "500 ns"),
        (0.0, "0 s"),
        (-0.0004, "−400 µs"),
        (math.nan, "not known"),
        (math.inf, "not known"),
    ],
)
def test_seconds(value: float, text: str) -> None:
    assert fmt.seconds(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1_073_741_824, "1 GiB"),
        (800 * 1024 * 1024, "800 MiB"),
        (1_677_721_600, "1.5625 GiB"),  # 819,200 × 2048
        (3_355_443_200, "3.125 GiB"),
        (217_382_912, "207 MiB"),  # 207.3125: more digits than any figure beside it has
        (17_301_504, "16.5 MiB"),
        (12_288, "12 KiB"),
        (13_476_838_400, "12.6 GiB"),  # 12.5513…: not exact in five digits
        (1000, "1000 B"),
        (0, "0 B"),
        (-2048, "−2 KiB"),
        (math.nan, "not known"),
    ],
)
def test_bytes_size(value: float, text: str) -> None:
    assert fmt.bytes_size(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (2.039e12, "B/s", "2.04 TB/s"),
        (20e9, "B/s", "20.0 GB/s"),
        (312e12, "FLOP/s", "312 TFLOP/s"),
        (33_554_432, "FLOP", "33.6 MFLOP"),
        (999.9e6, "B/s", "1.00 GB/s"),
        (0, "B/s", "0 B/s"),
        (0.25, "B/s", "0.250 B/s"),
        (math.nan, "B/s", "not known"),
    ],
)
def test_si(value: float, unit: str, text: str) -> None:
    assert fmt.si(value, unit) == text


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.992, "99.2 %"),
        (0.9999, "99.9 %"),  # never a false 100
        (1.0, "100 %"),
        (0.0, "0 %"),
        (0.0004, "< 0.1 %"),  # never a false 0
        (-0.0004, "> −0.1 %"),
        (-0.05, "−5.0 %"),
        (1.25, "125.0 %"),
        (math.nan, "not known"),
    ],
)
def test_percent(fraction: float, text: str) -> None:
    assert fmt.percent(fraction) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (14.0, "14"),
        (1_234_567, "1,234,567"),
        (682.7, "683"),
        (99.96, "100"),
        (13.14, "13.1"),
        (1.2e-5, "0.000012"),
        (0.04567, "0.0457"),
        (-2.5, "−2.50"),
        (0, "0"),
        (-math.inf, "not known"),
    ],
)
def test_number(value: float, text: str) -> None:
    assert fmt.number(value) == text


@pytest.mark.parametrize(
    ("value", "text"), [(1.0, "1.00"), (0.9995, "1.00"), (409.6, "409.6"), (200.6431, "200.6")]
)
def test_intensity_keeps_the_documents_digits(value: float, text: str) -> None:
    assert fmt.intensity(value) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.5, "fraction", "50.0 %"),
        (0.5, "s", "500 ms"),
        (1024, "bytes", "1 KiB"),
        (1555e9, "B/s", "1.55 TB/s"),
        (682.7, "tokens/s", "683 tokens/s"),
        (14, "", "14"),
        (math.nan, "tokens/s", "not known"),
    ],
)
def test_quantity_goes_by_unit(value: float, unit: str, text: str) -> None:
    assert fmt.quantity(value, unit) == text


def test_a_bound_says_which_way_it_reads() -> None:
    upper = Measure("device_busy", 0.93, "fraction", "bound", "", "upper")
    assert fmt.measure(upper) == "93.0 %, at most (bound)"
    assert fmt.provenance("bound", "lower") == "at least (bound)"
    assert fmt.provenance("measured") == "measured"
