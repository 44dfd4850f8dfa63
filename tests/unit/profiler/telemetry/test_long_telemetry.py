"""Files of telemetry that are larger than what is kept of them."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from stallscope.profiler.line_stream import UntilCut, line_stream, with_last
from stallscope.profiler.telemetry import formats, kept_rows
from stallscope.profiler.telemetry.kept_rows import KeptRows
from stallscope.profiler.telemetry.reader import read_telemetry
from stallscope.profiler.telemetry.rows import Identity, Row
from stallscope.profiler.text_lines import text_lines

S = 1_000_000_000
HEADER = "timestamp, index, utilization.gpu [%], memory.used [MiB]\n"


def row(i: int) -> Row:
    """A row each second, of two GPUs in turn, busy in every fourth second."""
    busy = float(i // 2 % 4 == 0)
    return Row(i // 2 * S, Identity(str(i % 2)), {"nvml_gpu_util": busy, "temperature_c": 50.0})


def kept(rows: int, most: int) -> KeptRows:
    found = KeptRows(most)
    found.draw_from(row(i) for i in range(rows))
    return found


def test_every_row_is_kept_up_to_the_limit() -> None:
    # A row of two values counts five.
    found = kept(200, most=1000).telemetry("nvidia-smi")
    assert found.rows == tuple(row(i) for i in range(200))
    assert found.notes == ()


def test_one_of_two_is_drawn_just_past_the_limit() -> None:
    found = kept(201, most=1000).telemetry("nvidia-smi")
    assert len(found.rows) == 100
    assert [note.split(" was")[0] for note in found.notes] == ["Of 201 rows one in 2"]


def test_what_is_drawn_of_many_says_what_all_say() -> None:
    # 40,000 rows of 5: one in 32 is the first power of two with 10,000 at the most (8: 25,000).
    found = kept(40_000, most=10_000).telemetry("nvidia-smi")
    assert 1000 <= len(found.rows) <= 2000
    for gpu in ("0", "1"):
        shares = [r.values["nvml_gpu_util"] for r in found.rows if r.device.index == gpu]
        assert len(shares) == pytest.approx(len(found.rows) / 2, rel=0.15)
        # A quarter, with a standard deviation of √(¼ · ¾ ⁄ 600) = 0.018, though it repeats every 8.
        assert sum(shares) / len(shares) == pytest.approx(0.25, abs=0.07)
    times = [r.t_ns or 0 for r in found.rows]
    assert max(times) - min(times) > 0.99 * 20_000 * S


def test_a_clock_set_back_and_words_for_no_value_are_told() -> None:
    found = KeptRows()
    found.append(Row(10 * S, Identity("0"), {"temperature_c": 1.0}))
    found.append(Row(8 * S, Identity("1"), {"temperature_c": 1.0}, {"power_mw": "[N/A]"}))
    assert not found.telemetry("x").jumps_back
    found.append(Row(9 * S - 1, Identity("0"), {"temperature_c": 1.0}, {"power_mw": "later"}))
    assert found.telemetry("x").jumps_back
    assert found.telemetry("x").missing == {"power_mw": "[N/A]"}


def test_a_file_that_is_drawn_from_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [f"2025/06/01 12:00:{i:02}.000, 0, {i} %, 100 MiB\n" for i in range(60)]
    path = tmp_path / "gpu.csv"
    path.write_text(HEADER + "".join(rows))
    assert len(read_telemetry(path).device_samples) == 120
    monkeypatch.setattr(KeptRows.__init__, "__defaults__", (100,))
    capture = read_telemetry(path)
    # 5 a row: 21 rows pass 100 and become 10, then every second one is drawn, and so on.
    assert 20 <= len(capture.device_samples) <= 40
    (note,) = [e.data["sentence"] for e in capture.events if e.kind == "check"]
    assert note.startswith("Of 60 rows one in 4 was read, drawn by chance")
    assert kept_rows.MOST_VALUES == 1_000_000


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_lines_of_many_blocks_are_those_of_the_whole(encoding: str, tmp_path: Path) -> None:
    rng, ends = random.Random(1), ("\n", "\r\n", "\r", "\n\n", "\x0c", "\u2028")
    text = "".join("é" * rng.randint(0, 90) + rng.choice(ends) for _ in range(60_000)) + "end"
    path = tmp_path / "text"
    path.write_bytes(text.encode(encoding))
    assert path.stat().st_size > 3 << 20
    assert list(line_stream(path)) == text_lines(path)


def test_a_line_without_end_comes_in_pieces(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("a" * (5 << 20) + "\nb")
    pieces = list(line_stream(path))
    assert "".join(pieces) == path.read_text()
    assert max(map(len, pieces)) <= 2 << 20
    assert list(line_stream(Path("/dev/null"))) == []


def test_the_last_line_is_told_and_left_out_where_it_breaks_off() -> None:
    assert list(with_last(["a", "b"])) == [("a", False), ("b", True)]
    assert list(with_last([])) == []
    for lines, expected, is_cut in ((["a\n", "b"], ["a\n"], True), (["a\n"], ["a\n"], False)):
        whole = UntilCut(lines, lambda line: not line.endswith("\n"))
        assert list(whole) == expected
        assert whole.is_cut is is_cut


def test_rows_without_a_header_are_told_by_the_first_of_them() -> None:
    line = "2024/01/16 14:44:16.981, NVIDIA L4, {} %, 23034 MiB, 70.10 W\n"
    lines = (line.format(i % 100) for i in range(30_000))
    found = formats.read_form(formats.Form.UNHEADED, lines)
    assert len(found.rows) == 30_000
    assert found.rows[-1].values["nvml_gpu_util"] == 0.99
