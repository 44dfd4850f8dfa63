"""TensorRT-LLM's iterations and statistics, and llama.cpp's timings."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import read, series

from stallscope.errors import InputError
from stallscope.profiler.file_kinds import InputKind, input_kind

STATES = "states = {'num_ctx_requests': 1, 'num_ctx_tokens': 300, 'num_generation_tokens': 16}"
ITER = "[04/28/2025-09:56:44] [TRT-LLM] [I] iter = 198, global_rank = 0, rank = 0, "


@pytest.mark.parametrize(
    ("middle", "decodes", "took_ms"),
    [
        (
            "currank_total_requests = 0/0, elapsed_time = 0.005s, timestamp = 2025-04-28, ",
            16,
            5,
        ),
        ("elapsed_time = 0.005s, num_scheduled_requests: 10, ", 9, 5),
        (
            "num_scheduled_requests = 5, kv_cache_util = 0.1, currank_total_requests = 0/1, "
            "host_step_time = 12.5ms, prev_device_step_time = 9.0ms, timestamp = 1, ",
            4,
            12.5,
        ),
    ],
)
def test_iterations_of_the_pytorch_backend(
    middle: str, decodes: int, took_ms: float, tmp_path: Path
) -> None:
    other_rank = ITER.replace("global_rank = 0", "global_rank = 1")
    capture = read(tmp_path, f"{ITER}{middle}{STATES}\n{other_rank}{middle}{STATES}\n")
    (step,) = capture.steps
    assert (step.prefill_requests, step.prefill_tokens) == (1, 300)
    assert (step.decode_requests, step.phase) == (decodes, "mixed")
    assert step.end_ns - step.start_ns == took_ms * 1e6
    assert capture.subject.engine == "tensorrt-llm"


def test_statistics_of_tritons_backend(tmp_path: Path) -> None:
    text = (
        'I1218 03:35:37.688135 20559 libtensorrtllm.cc:1205] {"Active Request Count":9,"Context '
        'Requests":1,"Free KV cache blocks":360,"Generation Requests":5,"Iteration Counter":0,"Max '
        'KV cache blocks":480,"Max Request Count":64,"Scheduled Requests":6,"Timestamp":"'
        '12-18-2023 03:35:37","Tokens per KV cache block":64,"Used KV cache blocks":120}\n'
    )
    capture = read(tmp_path, text)
    assert series(capture.engine_samples, "running") == [(-1, 6), (0, 6)]
    assert series(capture.engine_samples, "waiting") == [(-1, 3), (0, 3)]
    assert series(capture.engine_samples, "kv_used_fraction") == [(-1, 0.25), (0, 0.25)]
    assert series(capture.engine_samples, "input_tokens_total") == []
    assert capture.subject.max_num_seqs == 64


OLD = (
    "INFO [           print_timings] prompt eval time     =      15.00 ms /    12 tokens (    1.30 "
    'ms per token) | tid="1" timestamp=1723569622 id_slot=0\n'
    "INFO [           print_timings] generation eval time =    2000.00 ms /   500 runs   (    4.00 "
    'ms per token) | tid="1" timestamp=1723569622 id_slot=0\n'
)
NEW = (
    "slot print_timing: id  0 | task 0 | \n"
    "prompt eval time =      15.00 ms /    12 tokens (    1.30 ms per token,   800.00 tokens per "
    "second)\n"
    "       eval time =    2000.00 ms /   500 tokens (    4.00 ms per token,   250.00 tokens per "
    "second)\n"
    "      total time =    2015.00 ms /   512 tokens\n"
)


@pytest.mark.parametrize("text", [OLD, NEW], ids=["2024", "since"])
def test_timings_of_llama_cpp(text: str, tmp_path: Path) -> None:
    capture = read(tmp_path, text + text)
    assert [v for _, v in series(capture.engine_samples, "input_tokens_total")] == [12, 24]
    assert [v for _, v in series(capture.engine_samples, "output_tokens_total")] == [500, 1000]
    (event,) = capture.events
    # 24 tokens in 0.03 s, and 1,000 in 4 s.
    assert event.data["sentence"] == (
        "llama.cpp timed 2 requests: prompts at 800 tokens/s, generation at 250.0 tokens/s "
        "(4.00 ms each)."
    )
    assert capture.subject.engine == "llama.cpp"


@pytest.mark.parametrize(
    "text", [OLD, NEW, ITER, "[2025-11-11 04:28:01] Prefill batch, #new-seq: 1\n", "[TRT-LLM] [I]"]
)
def test_they_are_told_by_their_content(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    assert input_kind(path) is InputKind.SERVER_LOG


@pytest.mark.parametrize("text", ["[1, 2]", '{"a": 1}', "vllm serve x --port 8", "hello"])
def test_other_text_is_none(text: str, tmp_path: Path) -> None:
    path = tmp_path / "x.log"
    path.write_text(text)
    assert input_kind(path) is None


def test_a_log_without_a_line_of_use_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"holds no line of an inference server's"):
        read(tmp_path, "(APIServer pid=1) nothing\n")
