"""No line with a word is missed, wherever in a block or a file it stands."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from log_files import periodic, read, series

from stallscope.profiler.server_log.likely_lines import LikelyLines
from stallscope.profiler.server_log.reader import ENGINES
from stallscope.profiler.server_log.sought import sought

WORDS = (b"Running: ", b"KV cache", b"Error", b"iter")


@pytest.mark.parametrize("word", WORDS)
def test_a_word_is_found_at_every_place_of_a_line(word: bytes) -> None:
    likely = LikelyLines(WORDS)
    for before in range(9):
        for after in range(5):
            line = b"." * before + word + b"." * after
            assert list(likely.find(b"....\n" + line)) == [line]
            assert list(likely.find(b"ab\n\n" + line + b"\n" + b"c" * 7)) == [line]


def test_lines_come_once_in_order_and_those_without_a_word_hardly_ever() -> None:
    rng = random.Random(5)
    lines = [bytes(rng.choices(b"abcdefghij -", k=rng.randrange(60))) for _ in range(2000)]
    marked = sorted(rng.sample(range(2000), 100))
    for place in marked:
        lines[place] = b"x" * rng.randrange(9) + rng.choice(WORDS) + b" and " + rng.choice(WORDS)
    found = list(LikelyLines(WORDS).find(b"\n".join(lines)))
    assert [line for line in found if b" and " in line] == [lines[place] for place in marked]
    # 60,000 places, four of 65,536 hashes: 3.7 lines by chance.
    assert len(found) < 120


def test_nothing_is_found_in_nothing() -> None:
    assert list(LikelyLines(WORDS).find(b"abc")) == []


def test_a_line_across_two_blocks_is_whole(tmp_path: Path) -> None:
    line, later = (periodic(f"02-03 10:00:{s}", 4, 2, 25.0) for s in (10, 20))
    for short in range(1, len(line), 7):  # of the first MiB, where the line then begins
        filler = (("a" * 127 + "\n") * 8192)[short:]
        samples = read(tmp_path, filler + line + later).engine_samples
        assert series(samples, "running")[-1][1] == 4
        assert len({s.t_ns for s in samples}) == 3


def test_a_line_of_many_blocks_is_passed_over(tmp_path: Path) -> None:
    text = "a" * (5 << 20) + "\n" + periodic("02-03 10:00:10", 4, 2, 25.0)
    assert series(read(tmp_path, text).engine_samples, "running") == [(-10, 4), (0, 4)]


def test_utf_16_is_cut_within_no_letter(tmp_path: Path) -> None:
    text = "ä\N{SNAKE}" * 300_001 + "\n" + periodic("02-03 10:00:10", 4, 2, 25.0)
    assert series(read(tmp_path, text.encode("utf-16")).engine_samples, "waiting")[0] == (-10, 2)


@pytest.mark.parametrize("name", ENGINES)
def test_what_is_sought_is_found_as_by_the_pattern_alone(name: str) -> None:
    lines = [
        "(APIServer pid=7) INFO 02-03 10:00:10 [a.py:1] x",
        "INFO 02-03 10:00:10 " + "a" * 60 + ".py:1]",
        "INFO 02-03 10:00:10 [" + "a" * 60 + ".py:12]",
        "WARNING 02-03 10:00:10 [" + "a" * 61 + ".py:12]",
        "INFO 02-03 10:00:10 [a.py:x] INFO 02-03 10:00:10 [a.py:9]",
        *(
            "Avg prompt throughput: 1",
            "Running: 3 reqs",
            "Iteration(5): 1 context",
            "vllm: error: ",
        ),
        *("LLM engine (v0.1", "vLLM API server", "[2025] Decode batch, #run", "Prefill batch.#n"),
        *("new fill batch. #seq: 1", "#running-req: 3", "ServerArgs(", "sglang.launch_server"),
        *("x [TRT-LLM] y", "[TensorRT-LLM]", '{"Active Request Count":1}', "iter = 5, global_rank"),
        *("meval time = 3 ms /", "eval time = 3 ms / 4", "llama_model_load", "", "batch", "plain"),
    ]
    for line in lines:
        alone, found = ENGINES[name].pattern.search(line), ENGINES[name].search(line)
        assert (found and found.span()) == (alone and alone.span()), line


def test_what_stands_before_the_text_is_part_of_the_match() -> None:
    kv = sought(r"\b\w{2,8} KV cache usage: (\d+)%", " KV cache usage: ", before=8)
    assert kv.number("a, ABCDEFGH KV cache usage: 12%") == 12
    assert kv.number("ABCDEFGHI KV cache usage: 12%") is None
    assert kv.number("no KV cache usage: x%, GPU KV cache usage: 7%") == 7
    assert re.search(r"\b\w{2,8} KV", "ABCDEFGHI KV") is None
