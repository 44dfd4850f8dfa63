"""What a log shows without stating it: the sequence cap."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import periodic, read


def log(*rows: tuple[int, int, float], prompts: float = 0.0) -> str:
    lines = (
        periodic(f"02-03 10:{i // 6:02}:{i % 6 * 10:02}", *row).replace(
            "50.0 tokens", f"{prompts} tokens"
        )
        for i, row in enumerate(rows)
    )
    return "".join(lines)


@pytest.mark.parametrize(
    ("rows", "cap"),
    [
        (((256, 240, 41.0), (250, 180, 37.0)), 256),  # vLLM's default, never passed
        (((256, 240, 41.0), (257, 180, 37.0)), None),
        (((256, 0, 41.0), (255, 9, 37.0)), None),  # nobody waited at it
        (((64, 9, 41.0),) * 4, 64),  # pinned in every line
        (((64, 9, 41.0),) * 3, None),
        (((64, 9, 97.0),) * 6, None),  # KV is full instead
        (((4, 9, 41.0),) * 6, None),  # so few are held by much else
        ((*((64, 9, 41.0),) * 5, *((60, 9, 41.0),) * 2), None),  # 5 of 7 lines
        ((*((64, 9, 41.0),) * 5, *((61, 9, 41.0),) * 5), 64),  # between two steps: 61 > 0.95 * 64
        ((*((64, 9, 41.0),) * 5, *((61, 9, 41.0),) * 6), None),  # it swings, and is seldom there
    ],
)
def test_the_cap(rows: tuple[tuple[int, int, float], ...], cap: int | None, tmp_path: Path) -> None:
    capture = read(tmp_path, log(*rows))
    assert capture.subject.max_num_seqs == cap
    said = [e.data["sentence"] for e in capture.events if e.kind == "check"]
    assert any(f"stood at {cap}" in s for s in said) is (cap is not None)
