"""Numbers with units, and times, against values worked out by hand or by datetime."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from stallscope.profiler.telemetry.cells import in_unit
from stallscope.profiler.telemetry.moments import wall_ns


@pytest.mark.parametrize(
    ("text", "unit", "stated", "value"),
    [
        ("87 %", "fraction", "%", 0.87),
        ("87", "fraction", "%", 0.87),
        ("0.884", "fraction", "1", 0.884),
        ("100.4 %", "fraction", "%", 1.0),  # a rounding, not an error
        ("102 %", "fraction", "%", None),
        ("12,5 W", "mW", "W", 12_500),
        ("1.5e2 W", "mW", "W", 150_000),
        ("81559MiB", "bytes", "MiB", 81559 * 1048576),
        ("2 GiB", "bytes", "MiB", 2147483648),
        ("1980 MHz", "Hz", "MHz", 1_980_000_000),
        ("-5 C", "°C", "C", -5),
        ("-5 W", "mW", "W", None),
        ("7 bananas", "mW", "W", None),
        ("0x0000000000000024", "bitmask", "1", 36),
        ("36", "bitmask", "1", 36),
        ("4000 KB/s", "B/s", "KB/s", 4_000_000),
        ("1,024.5 W", "mW", "W", None),  # which of the two is the decimal sign is not known
        ("140737488355329", "fraction", "1", None),
        ("nan", "fraction", "1", None),
        ("", "fraction", "1", None),
    ],
)
def test_cells(text: str, unit: str, stated: str, value: float | None) -> None:
    assert in_unit(text, unit, stated) == value


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024/02/29 23:59:59.507", datetime(2024, 2, 29, 23, 59, 59, 507_000)),
        ("2024-02-29T23:59:59", datetime(2024, 2, 29, 23, 59, 59)),
        ("29.02.2024 23:59:59,5", datetime(2024, 2, 29, 23, 59, 59, 500_000)),
        ("Fri Aug  1 15:47:06 2025", datetime(2025, 8, 1, 15, 47, 6)),
        ("20261231 23:59:58", datetime(2026, 12, 31, 23, 59, 58)),
        ("1718783836.956328", datetime(2024, 6, 19, 7, 57, 16, 956_328)),
        ("2023/02/29 00:00:00", None),  # no such day
        ("2023/13/01 00:00:00", None),
        ("Fri Foo  1 15:47:06 2025", None),
        ("24", None),
        ("", None),
    ],
)
def test_moments(text: str, moment: datetime | None) -> None:
    if moment is None:
        assert wall_ns(text) is None
        return
    since = moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    assert (
        wall_ns(text) == (since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000
    )
