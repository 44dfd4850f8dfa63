"""Lines that stand twice count once: an excerpt pasted again, excerpts that overlap."""

from __future__ import annotations

from pathlib import Path

from log_files import periodic, read, series

LOG = [periodic(f"09-04 06:02:{s}", r, 215, 99.0) for s, r in (("08", 256), ("18", 244))]
PREEMPTED = (
    "WARNING 10-28 11:16:41 scheduler.py:1483] Sequence group chat-{id} is preempted by "
    "PreemptionMode.SWAP mode because there is not enough KV cache space. "
    "total_num_cumulative_preemption={total}\n"
)
NOTE = "{} twice in the log, letter for letter and with its time: counted once."


def notes(folder: Path, text: str) -> list[str]:
    said = (e.data.get("sentence") for e in read(folder, text).events if e.kind == "check")
    return [str(s) for s in said if "twice" in str(s)]


def test_an_excerpt_pasted_twice_reads_as_once(tmp_path: Path) -> None:
    text = "".join(LOG)
    once, twice = read(tmp_path, text), read(tmp_path, text * 2)
    assert twice.engine_samples == once.engine_samples
    assert twice.meta["clock"] == once.meta["clock"]
    assert notes(tmp_path, text * 2) == [NOTE.format("2 lines stand")]
    assert notes(tmp_path, text) == []


def test_an_excerpt_of_hours_pasted_twice_does_not_go_on(tmp_path: Path) -> None:
    # Back by more than ten minutes the clock counts as set back, and time would go on: not here.
    text = periodic("09-04 06:00:00", 9, 0, 10.0) + periodic("09-04 08:00:00", 8, 1, 11.0)
    assert read(tmp_path, text * 2).engine_samples == read(tmp_path, text).engine_samples


def test_excerpts_that_overlap_are_one_log(tmp_path: Path) -> None:
    third = periodic("09-04 06:02:28", 234, 237, 99.0)
    whole = "".join([*LOG, third])
    overlapping = "".join([*LOG, LOG[1], third])
    assert read(tmp_path, overlapping).engine_samples == read(tmp_path, whole).engine_samples
    again = "".join([*LOG, third, LOG[1], third])
    assert read(tmp_path, again).engine_samples == read(tmp_path, whole).engine_samples
    assert notes(tmp_path, again) == [NOTE.format("2 lines stand")]


def test_one_warning_of_preemption_three_times_is_one(tmp_path: Path) -> None:
    line = periodic("10-28 11:16:39", 2, 98, 86.1)
    warned = PREEMPTED.format(id="7e63", total=1)
    other = PREEMPTED.format(id="8f00", total=51)
    found = read(tmp_path, line + warned * 3 + other)
    totals = [e.data["total"] for e in found.events if e.kind == "preempt"]
    assert totals == [1, 51]


def test_equal_lines_of_a_prompt_in_chunks_are_kept(tmp_path: Path) -> None:
    chunk = (
        "[2025-09-03 18:33:18 TP0] Prefill batch. #new-seq: 1, #new-token: 8192, #cached-token: 0, "
        "token usage: 0.10, #running-req: 4, #queue-req: 2, \n"
    )
    found = read(tmp_path, chunk * 3)
    assert [n for _, n in series(found.engine_samples, "input_tokens_total")] == [
        8192.0,
        16384.0,
        24576.0,
    ]
    assert notes(tmp_path, chunk * 3) == []


def test_a_server_that_says_the_same_later_is_heard(tmp_path: Path) -> None:
    text = "".join(periodic(f"09-04 06:02:{s}", 5, 0, 10.0) for s in ("08", "18", "28"))
    times = [t for t, _ in series(read(tmp_path, text).engine_samples, "running")]
    assert len(times) == 4  # three periods begin, and the last one ends
