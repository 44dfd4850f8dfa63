"""What is told on stderr, and the classes that --fail-on takes."""

from __future__ import annotations

import pytest

from stallscope.errors import UsageError
from stallscope.output import changes_only, parse_classes


def test_progress_that_says_the_same_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    tell = changes_only()
    for text in ("0 done", "0 done", "1 done", "0 done"):
        tell(text)
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [f"stallscope: {n} done" for n in (0, 1, 0)]


def test_classes_are_parsed() -> None:
    assert parse_classes(None) == frozenset()
    assert parse_classes("capacity, host") == {"capacity", "host"}


@pytest.mark.parametrize("text", ["", "capacity,", "Capacity", "slow"])
def test_unknown_class_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="unknown class '.*'; known: capacity, bandwidth"):
        parse_classes(text)
