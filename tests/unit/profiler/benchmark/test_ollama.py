"""What Ollama says of a request: as JSON, as the end of a stream, and as --verbose prints it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from benchmark_rows import capture_of, trials_in

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.file_kinds import InputKind, input_kind
from stallscope.profiler.reading import read_input

# 10 s in all, 8 s of them from the first token on: 2 s before it. 201 tokens: 200 gaps of 40 ms.
ANSWER: dict[str, Any] = {
    **{"model": "llama3.2", "created_at": "2023-08-04T19:22:45.499127Z", "response": ""},
    **{"done": True, "context": [1, 2, 3], "total_duration": 10_000_000_000},
    **{"load_duration": 5_000_000, "prompt_eval_count": 26, "prompt_eval_duration": 1_900_000_000},
    **{"eval_count": 201, "eval_duration": 8_000_000_000},
}
PRINTED = """\
total duration:       1m10.5s
load duration:        60.25ms
prompt eval count:    26 token(s)
prompt eval duration: 500ms
prompt eval rate:     52.00 tokens/s
eval count:           1001 token(s)
eval duration:        1m0s
eval rate:            16.68 tokens/s
"""


def checks(folder: Path, content: object) -> list[object]:
    return [e.data["sentence"] for e in capture_of(folder, content).events if e.kind == "check"]


def test_one_answer_by_hand(tmp_path: Path) -> None:
    capture = capture_of(tmp_path, ANSWER)
    (trial,) = trials_in(capture)
    assert capture.meta["benchmark"]["tool"] == "Ollama"
    assert capture.subject.workload == "1 request to llama3.2 of 26 + 201 tokens"
    assert (trial.completed, trial.duration_s) == (1, pytest.approx(10.0))
    assert trial.latency["ttft_s"].mean == pytest.approx(10.0 - 8.0)
    assert trial.latency["tpot_s"].mean == pytest.approx(0.040)
    assert trial.latency["e2e_s"].mean == pytest.approx(10.0)
    assert trial.output_tokens_per_s == pytest.approx(201 / 10.0)
    assert trial.input_tokens_per_s == pytest.approx(26 / 10.0)


def test_a_stream_is_its_last_object(tmp_path: Path) -> None:
    part = {"model": "llama3.2", "created_at": "x", "response": "The", "done": False}
    stream = "\n".join(json.dumps(row) for row in (part, part, ANSWER))
    assert trials_in(capture_of(tmp_path, stream)) == trials_in(capture_of(tmp_path, ANSWER))


def test_what_verbose_prints(tmp_path: Path) -> None:
    """70.5 s in all, 60 s from the first of 1,001 tokens on: 60 ms each, 10.5 s before."""
    for text in (PRINTED, f">>> hello\nHello!\n\n{PRINTED}\n>>> \n"):
        path = tmp_path / "said.txt"
        path.write_text(text)
        assert input_kind(path) is InputKind.BENCHMARK
        (trial,) = trials_in(read_input(path))
        assert (trial.input_tokens, trial.output_tokens) == (26, 1001)
        assert trial.latency["ttft_s"].mean == pytest.approx(10.5)
        assert trial.latency["tpot_s"].mean == pytest.approx(0.060)
        assert trial.latency["e2e_s"].mean == pytest.approx(70.5)


def test_each_answer_is_a_trial(tmp_path: Path) -> None:
    twice = PRINTED + PRINTED.replace("1m10.5s", "1m20s")
    assert [t.duration_s for t in trials_in(capture_of(tmp_path, twice))] == [70.5, 80.0]
    assert len(trials_in(capture_of(tmp_path, [ANSWER, ANSWER]))) == 2


def test_a_model_that_was_loaded_first_is_said(tmp_path: Path) -> None:
    assert checks(tmp_path, ANSWER) == []  # 5 ms of 2 s
    cold = {**ANSWER, "load_duration": 1_500_000_000}
    assert checks(tmp_path, cold) == [
        "Of 2 s before the first token Ollama took 1.5 s to load the model; ask again while it is "
        "loaded."
    ]


def test_a_cached_prompt_and_a_single_token_tell_less(tmp_path: Path) -> None:
    """A prompt out of the cache has no count, and one token has no gap."""
    left_out = ("prompt_eval_count", "prompt_eval_duration")
    one = {k: v for k, v in ANSWER.items() if k not in left_out} | {"eval_count": 1}
    (trial,) = trials_in(capture_of(tmp_path, one))
    assert (trial.input_tokens, trial.input_tokens_per_s) == (None, None)
    assert set(trial.latency) == {"ttft_s", "e2e_s"}


@pytest.mark.parametrize("wrong", [-1, "NaN", None, "much", [1], 1e400, 11_000_000_000])
def test_a_time_that_cannot_be_is_none(tmp_path: Path, wrong: object) -> None:
    row = json.dumps({**ANSWER, "eval_duration": 7}).replace(
        '"eval_duration": 7', f'"eval_duration": {json.dumps(wrong)}, "x": {{"eval_duration": 7}}'
    )
    (trial,) = trials_in(capture_of(tmp_path, row))
    assert set(trial.latency) == {"e2e_s"}


def test_printed_durations_that_are_none_are_left_out(tmp_path: Path) -> None:
    (trial,) = trials_in(capture_of(tmp_path, PRINTED.replace("1m0s", "1x0s")))
    assert set(trial.latency) == {"e2e_s"}


def test_one_request_alone_waits_for_no_queue(tmp_path: Path) -> None:
    measures = {m.name: m.value for m in diagnose(capture_of(tmp_path, ANSWER)).measures}
    assert measures["in_flight"] == pytest.approx(1.0)
    assert measures["queue_wait_share"] == 0
