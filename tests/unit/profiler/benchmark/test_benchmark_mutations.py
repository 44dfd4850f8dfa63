"""Damaged results: a capture that can be diagnosed, or one line, and never anything else."""

from __future__ import annotations

import json
import math
import random
import re
from pathlib import Path

import pytest
from test_benchmark_arrays import DETAILED
from test_benchmark_files import RESULTS

from stallscope.analyzers.diagnose import diagnose
from stallscope.errors import StallscopeError
from stallscope.profiler.capture import Capture
from stallscope.profiler.reading import read_input
from stallscope.reports import json_report, terminal

MUTATIONS = 300
PIECES = (
    b"\0",
    b"\xff",
    b"\n",
    b"-1",
    b"9" * 40,
    b"1e400",
    b"NaN",
    b"Infinity",
    b"null",
    b"true",
    b'"x"',
    b"[]",
    b"{}",
    b"[[[[",
)
VALUES = ("-1", "0", "1e308", "NaN", "null", "true", '"x"', "[]", '{"a": [1]}', "9" * 30, '"inf"')
SEEDS = {name: content for name, (content, _) in RESULTS.items()} | {"detailed": DETAILED}


def mutated(content: bytes, chance: random.Random) -> bytes:
    """Return up to 16 KiB with one to three values or stretches changed, cut, doubled or put in."""
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(content) + 1)
        end = min(len(content), at + chance.randint(0, 40))
        colon = content.find(b": ", at) + 2
        value_end = min((e for e in (content.find(c, colon) for c in b",}]") if e > 0), default=end)
        content = chance.choice(
            (
                content[:colon] + chance.choice(PIECES) + content[value_end:],
                content[:colon] + chance.choice(PIECES) + content[value_end:],
                content[:at] + content[end:],
                content[:at] + content[at:end] * 2 + content[end:],
                content[:at] + chance.choice(PIECES) + content[end:],
            )
        )
        content = content[: 16 << 10] or b"x"
    return content


def odd_value(text: str, chance: random.Random) -> bytes:
    """Return valid rows with one value replaced by one that does not belong there."""
    places = [m.span(1) for m in re.finditer(r': ("[^"]*"|-?[\d.e+]+|null|false)', text)]
    if not places:
        return mutated(text.encode(), chance)
    start, end = chance.choice(places)
    return f"{text[:start]}{chance.choice(VALUES)}{text[end:]}".encode()


def capture_or_refusal(path: Path) -> Capture | str:
    try:
        return read_input(path)
    except StallscopeError as error:
        return str(error)


@pytest.mark.parametrize("name", SEEDS)
def test_mutations(name: str, tmp_path: Path) -> None:
    chance, path = random.Random(f"benchmark {name}"), tmp_path / "results.json"
    seed = SEEDS[name]
    text = seed if isinstance(seed, str) else json.dumps(seed)
    read = 0
    for i in range(MUTATIONS):
        damage = odd_value(text, chance) if i % 2 else mutated(text.encode(), chance)
        path.write_bytes(damage)
        capture = capture_or_refusal(path)
        if isinstance(capture, str):
            assert "\n" not in capture
            continue
        read += 1
        diagnosis = diagnose(capture)
        assert diagnosis.verdict.sentence
        for spread in diagnosis.latency.values():
            told = (spread.mean, spread.p50, spread.p90, spread.p99)
            assert all(v is None or (v >= 0 and math.isfinite(v)) for v in told)
        assert json_report.render(diagnosis)
        assert i % 10 or terminal.render(diagnosis, width=100, color=False)
    assert read > MUTATIONS / 4  # else the mutations test nothing but the refusal
