"""The driver sees what it looks for, and makes the same damage twice."""

from __future__ import annotations

import fuzz_case
import pytest
from fuzz_damage import MOST_BYTES
from fuzz_parsers import PARSERS
from fuzz_run import fuzz

FAULTS = {
    "raises": "ZeroDivisionError: 'input' at tests/fuzz/fuzz_broken.py",
    "hangs": "more than 5 s",
    "dies": "the process died (-9)",
    "takes memory": "MemoryError: '' at tests/fuzz/fuzz_broken.py",
    "says nothing": "a message that is no line: ''",
    "no number": "AssertionError: 'a value that is not finite'",
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_reader_that_does_wrong_is_seen_and_the_next_case_runs(name: str) -> None:
    result = fuzz(name, cases=2, seed="x")
    assert [said[: len(FAULTS[name])] for said in result.faults.values()] == [FAULTS[name]] * 2
    assert result.read == result.refused == 0


@pytest.mark.parametrize("parser", PARSERS)
def test_a_case_is_the_same_file_each_time_and_small(parser: str) -> None:
    seeds = PARSERS[parser].seeds()
    for index in range(20):
        content = fuzz_case.content_of(parser, "a", index, seeds)
        assert len(content) <= MOST_BYTES
        assert content == fuzz_case.content_of(parser, "a", index, seeds)
    assert fuzz_case.content_of(parser, "b", 0, seeds) != fuzz_case.content_of(
        parser, "a", 0, seeds
    )
