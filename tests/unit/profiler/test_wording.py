"""Numbers within sentences never have an exponent, and one thing is one thing."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from stallscope.profiler.wording import counted, figure, were

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (7.81, "7.81"),
        (7.8, "7.8"),
        (64.0, "64"),
        (999.4, "999"),
        (999.5, "1,000"),
        (1243.7, "1,244"),
        (38_400.2, "38,400"),
        (-1243.7, "-1,244"),
        (0.000454321, "0.000454"),
        (1e-9, "0.000000001"),
        (1.5e14, "150,000,000,000,000"),
    ],
)
def test_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert figure(value) == text


def test_more_digits_are_kept_where_asked() -> None:
    assert [figure(v, 4) for v in (3.35412, 989.44, 3350.6)] == ["3.354", "989.4", "3,351"]
    assert figure(0.0456, 2) == "0.046"
    assert [figure(v, 6) for v in (1234.56, 2e6)] == ["1,234.56", "2,000,000"]


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "request", "1 request"),
        (1.0004, "request", "1 request"),  # printed as one, it is one
        (0, "step", "0 steps"),
        (7.81, "request", "7.81 requests"),
        (1243, "launch", "1,243 launches"),
    ],
)
def test_nouns_agree(count: float, noun: str, text: str) -> None:
    assert counted(count, noun) == text


def test_one_was_and_more_were() -> None:
    assert [were(n, "row") for n in (1, 2)] == ["1 row was", "2 rows were"]


def formats() -> set[str]:
    """Return the files in which a value within an f-string is set to so many digits by "g"."""
    found = set()
    for folder in ("cli", "profiler", "analyzers", "reports", "runner"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                spec = node.format_spec if isinstance(node, ast.FormattedValue) else None
                if spec is not None and re.search(r"\.(\d|\{.*\})g'", ast.unparse(spec)):
                    found.add(str(path.relative_to(ROOT)))
    return found


def test_no_sentence_sets_numbers_its_own_way() -> None:
    # Such a format falls into exponents: "1.24e+03 requests".
    assert formats() == {"profiler/wording.py", "reports/format.py"}
