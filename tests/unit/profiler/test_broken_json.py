"""A JSON file that is cut says so, and where."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.profiler.reading import read_input


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"é": 1, "total_inp', "not valid JSON: it is cut at byte 20"),  # é takes two bytes
        ('{"a": [1, 2', "not valid JSON: it is cut at byte 11"),
        ('{"a": tru', "not valid JSON: it is cut at byte 9"),
        ('{"a":', "not valid JSON: it is cut at byte 5"),
        ('{"é": x}', "not valid JSON, from byte 7 on"),
        ('{"a": 1}', "a JSON file"),
        ('{"a": 1}\n{"a": 2}\n', "a JSON file"),
    ],
)
def test_a_json_file_that_breaks_off_says_where(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as raised:
        read_input(path)
    assert str(raised.value).startswith(f"{path}: {said}; diagnose reads")


@pytest.mark.parametrize("text", [">\n", "> > hello\n> you\n"])
def test_a_quoted_text_of_nothing_known_gets_the_usual_line(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(text)
    with pytest.raises(InputError) as raised:
        read_input(path)
    assert str(raised.value).startswith(f"{path}: a text file; diagnose reads")
