"""300 damaged files for each reader: a capture that can be judged, or one line."""

from __future__ import annotations

import pytest
from fuzz_parsers import PARSERS
from fuzz_run import fuzz, told

CASES = 300


@pytest.mark.parametrize("parser", PARSERS)
def test_damage_is_read_or_refused_in_one_line(
    parser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "1")
    result = fuzz(parser, cases=CASES, seed="CI")
    assert not result.faults, told(parser, result)
    assert result.read + result.refused == CASES
    # Damage that nothing survives, or nothing notices, would test little.
    assert result.read >= PARSERS[parser].least_read * CASES, told(parser, result)
    assert result.refused >= PARSERS[parser].least_refused * CASES, told(parser, result)
