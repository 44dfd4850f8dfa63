"""Tables of runs as people write them down."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.errors import InputError
from stallscope.profiler.run_table import has_run_table, read_run_table


def table(folder: Path, text: str) -> Path:
    path = folder / "runs.csv"
    path.write_text(text)
    return path


def test_settings_figures_and_names(tmp_path: Path) -> None:
    rows = read_run_table(
        table(tmp_path, "Run,Threads,load,tok/s,TPOT (ms),ttft_s\nfirst,2,heavy,16.8,59.5,\n")
    )
    assert [row.name for row in rows] == ["first"]
    assert rows[0].settings == {"threads": 2.0, "load": "heavy"}
    assert rows[0].figures == {
        "output_tokens_per_s": (16.8, False),
        "tpot_s": (pytest.approx(0.0595), True),
    }


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_separators(tmp_path: Path, separator: str) -> None:
    text = "threads,pages/s\n1,14.0\n\n2,16.8\n".replace(",", separator)
    rows = read_run_table(table(tmp_path, text))
    assert [row.figures["pages_per_s"][0] for row in rows] == [14.0, 16.8]
    assert [row.name for row in rows] == ["line 2", "line 3"]


@pytest.mark.parametrize(
    "text",
    ["", "threads,pages/s", "threads,pages\n1,2\n", "pages/s\n3\n", "a,b/s\n1,2,3\n", "{}\n[]\n"],
)
def test_what_is_no_table(tmp_path: Path, text: str) -> None:
    assert not has_run_table(text)
    with pytest.raises(InputError, match="a table of runs has a header"):
        read_run_table(table(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("threads,tok/s\n1,2\n2,3,4\n", "line 3: 3 values under 2 columns"),
        ("threads,tok/s\n1,2\n2,fast\n", "line 3: tok/s is 'fast'"),
        ("threads,tok/s\n1,0\n", "line 2: tok/s is '0'"),
        ("threads,tok/s\n1,inf\n", "line 2: tok/s is 'inf'"),
        ("threads,threads,tok/s\n1,2,3\n", "two columns have one name"),
    ],
)
def test_what_is_wrong_in_a_table(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        read_run_table(table(tmp_path, text))


def test_a_huge_file_is_refused(tmp_path: Path) -> None:
    path = table(tmp_path, "threads,tok/s\n" + "1,2\n" * 1_200_000)
    with pytest.raises(InputError, match="over 4 MiB"):
        read_run_table(path)
