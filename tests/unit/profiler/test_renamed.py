"""What was read under another name is called as the user calls it, in every place."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stallscope.app import call

BLOCK = """\
============ Serving Benchmark Result ============
Successful requests:                     100
Benchmark duration (s):                  {seconds}
Total input tokens:                      100000
Total generated tokens:                  700000
Mean TTFT (ms):                          700.00
Mean TPOT (ms):                          20.00
==================================================
"""


@pytest.mark.parametrize("before", ["", "quoted"])
def test_the_loads_of_a_paste_are_called_by_it(
    before: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = BLOCK.format(seconds=955.0) + BLOCK.format(seconds=500.0)
    if before:
        text = "".join(f"> {line}" for line in text.splitlines(keepends=True))
    path = tmp_path / "two.txt"
    path.write_text(text)
    assert call(["diagnose", str(path), "--format", "json"]) == 0
    told = capsys.readouterr().out
    assert "stallscope-" not in told  # a folder of our own
    rows = json.loads(told)["sweep"]["rows"]
    assert [row["source"] for row in rows] == [f"{path}, row 1", f"{path}, row 2"]
