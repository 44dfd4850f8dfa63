"""vLLM's lines: every variant with every field, and the settings that a start-up states."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import S, periodic, read, series

V1 = periodic("02-03 10:00:10", 4, 2, 25.0) + periodic("02-03 10:00:20", 5, 1, 50.0)


def check_v1(samples: tuple[object, ...]) -> None:
    """The two lines speak for the two periods of ten seconds that they close."""
    assert series(samples, "running") == [(-10, 4), (0, 5), (10, 5)]
    assert series(samples, "waiting") == [(-10, 2), (0, 1), (10, 1)]
    assert series(samples, "kv_used_fraction") == [(-10, 0.25), (0, 0.5), (10, 0.5)]
    assert series(samples, "input_tokens_total") == [(-10, 0), (0, 500), (10, 1000)]
    assert series(samples, "output_tokens_total") == [(-10, 0), (0, 1000), (10, 2000)]
    assert series(samples, "prefix_hit_fraction") == [(-10, 0.125), (0, 0.125), (10, 0.125)]


@pytest.mark.parametrize(
    "text",
    [
        V1,
        V1.replace("(APIServer pid=7)", "\x1b[0;36m(APIServer pid=7)\x1b[0;0m"),
        V1.replace("INFO", "\x1b[32mINFO\x1b[0m"),
        V1.replace("\n", ""),  # two processes wrote at once
        V1.replace("Running", "\0\0Running"),
        V1.replace("\n", "\r\n"),
        "Loading:  50%|#####     | 1/2\r" + V1,
        V1.replace("Engine 000", "Engine 0"),
    ],
    ids=["plain", "ansi", "ansi level", "glued", "nul", "crlf", "progress", "engine"],
)
def test_v1_however_it_was_written_down(text: str, tmp_path: Path) -> None:
    check_v1(read(tmp_path, text).engine_samples)


def test_utf_16_as_powershell_redirects(tmp_path: Path) -> None:
    check_v1(read(tmp_path, V1.encode("utf-16")).engine_samples)


def test_an_external_prefix_cache_and_another_device(tmp_path: Path) -> None:
    line = periodic("02-03 10:00:10", 1, 0, 3.0).replace("GPU KV", "CPU KV").rstrip()
    found = read(tmp_path, f"{line}, External prefix cache hit rate: 37.5%\n").engine_samples
    assert series(found, "kv_used_fraction") == [(-10, 0.03), (0, 0.03)]
    assert series(found, "prefix_hit_fraction") == [(-10, 0.125), (0, 0.125)]
    assert series(found, "external_prefix_hit_fraction") == [(-10, 0.375), (0, 0.375)]


def test_data_parallel_engines_stay_apart(tmp_path: Path) -> None:
    other = periodic("02-03 10:00:10", 9, 3, 80.0).replace("Engine 000", "Engine 001")
    found = read(tmp_path, periodic("02-03 10:00:10", 4, 2, 25.0) + other).engine_samples
    assert series(found, "running", "0") == [(-10, 4), (0, 4)]
    assert series(found, "running", "1") == [(-10, 9), (0, 9)]


def test_version_0_counts_swapped_requests_as_waiting(tmp_path: Path) -> None:
    line = (
        "INFO 02-28 21:48:18 metrics.py:161] Avg prompt throughput: 10.0 tokens/s, Avg generation "
        "throughput: 44.0 tokens/s, Running: 2 reqs, Swapped: 1 reqs, Pending: 3 reqs, GPU KV "
        "cache usage: 82.1%, CPU KV cache usage: 7.0%.\n"
    )
    found = read(tmp_path, line)
    assert series(found.engine_samples, "running") == [(-5, 2), (0, 2)]
    assert series(found.engine_samples, "waiting") == [(-5, 4), (0, 4)]
    assert series(found.engine_samples, "kv_used_fraction") == [(-5, 0.821), (0, 0.821)]
    assert series(found.engine_samples, "input_tokens_total") == [(-5, 0), (0, 50)]
    assert series(found.engine_samples, "output_tokens_total") == [(-5, 0), (0, 220)]


def test_version_0_says_that_it_preempts(tmp_path: Path) -> None:
    text = (
        "INFO 10-28 11:16:34 metrics.py:349] Avg prompt throughput: 0.0 tokens/s, Avg generation "
        "throughput: 7.0 tokens/s, Running: 2 reqs, Swapped: 0 reqs, Pending: 98 reqs, GPU KV "
        "cache usage: 73.8%, CPU KV cache usage: 0.0%.\n"
        "WARNING 10-28 11:16:41 scheduler.py:1483] Sequence group x is preempted by "
        "PreemptionMode.SWAP mode because there is not enough KV cache space. "
        "total_num_cumulative_preemption=51\n"
    )
    (event,) = [e for e in read(tmp_path, text).events if e.kind == "preempt"]
    assert (event.t_ns, event.data) == (7 * S, {"engine": "0", "total": 51})


def iteration(clock: str, number: int, work: str, took: float) -> str:
    return (
        f"(EngineCore_DP0 pid=9) INFO {clock} [core.py:349] Iteration({number}): {work}, iteration "
        f"elapsed time: {took} ms\n"
    )


MIXED = "1 context requests, 512 context tokens, 8 generation requests, 9 generation tokens"
PREFILL = "2 context requests, 600 context tokens, 0 generation requests, 0 generation tokens"
DECODE = "0 context requests, 0 context tokens, 8 generation requests, 8 generation tokens"


def test_iterations_become_steps_of_their_own_length(tmp_path: Path) -> None:
    text = (
        iteration("12-22 21:44:40", 0, PREFILL, 300.0)
        + iteration("12-22 21:44:40", 1, MIXED, 200.0)
        + iteration("12-22 21:44:41", 2, DECODE, 100.0)
    )
    steps = read(tmp_path, text).steps
    shapes = [(s.phase, s.prefill_requests, s.prefill_tokens, s.decode_requests) for s in steps]
    assert shapes == [("prefill", 2, 600, 0), ("mixed", 1, 512, 8), ("decode", 0, 0, 8)]
    assert [s.end_ns - s.start_ns for s in steps] == [300_000_000, 200_000_000, 100_000_000]
    # The last was logged at 1 s or later. As late as stamps allow, the two before end with second 0
    # or where the next began, whichever is first: 1.0 − 0.1 = 0.9 s, then 0.9 − 0.2 = 0.7 s.
    assert [s.end_ns for s in steps] == [700_000_000, 900_000_000, 1_000_000_000]
    assert {s.waiting for s in steps} == {None}


def test_a_silence_between_iterations_is_no_longer_than_the_stamps_force(tmp_path: Path) -> None:
    text = iteration("12-22 21:44:40", 0, DECODE, 10.0) + iteration(
        "12-22 21:44:50", 1, DECODE, 10.0
    )
    first, second = read(tmp_path, text).steps
    assert second.end_ns == 10 * S
    assert first.end_ns == S - 1  # within its second


START = """\
(APIServer pid=1) INFO 08-18 02:57:50 [api_utils.py:339]   version 0.25.1
(APIServer pid=1) INFO 08-18 02:57:52 [api_utils.py:273] non-default args: {'model_tag': 'a/b-7B', \
'model': 'a/b-7B', 'max_model_len': 4096, 'max_num_seqs': 48, 'block_size': 32, \
'speculative_config': {'model': 'a/draft', 'num_speculative_tokens': 3}}
(APIServer pid=1) INFO 08-18 02:57:57 [scheduler.py:229] Chunked prefill is enabled with \
max_num_batched_tokens=8192.
(EngineCore pid=2) INFO 08-18 02:57:59 [core.py:114] Initializing a V1 LLM engine (v0.25.1) with \
config: model='a/b-7B', speculative_config=None, tokenizer='a/b-7B', dtype=torch.bfloat16, \
max_seq_len=4096, tensor_parallel_size=2, pipeline_parallel_size=2, quantization=None, \
kv_cache_dtype=fp8, enable_chunked_prefill=True
(EngineCore pid=2) INFO 08-18 02:58:03 [gpu_model_runner.py:5306] Model loading took 14.5 GiB \
memory and 20.6 seconds
(EngineCore pid=2) INFO 08-18 02:58:09 [gpu_worker.py:298] Available KV cache memory: 24.5 GiB
(EngineCore pid=2) INFO 08-18 02:58:10 [kv_cache_utils.py:1087] GPU KV cache size: 464,928 tokens
(EngineCore pid=2) INFO 08-18 02:58:10 [kv_cache_utils.py:1091] Maximum concurrency for 4,096 \
tokens per request: 113.51x
(APIServer pid=1) INFO:     Application startup complete.
"""


def test_a_start_states_settings_and_sizes(tmp_path: Path) -> None:
    capture = read(tmp_path, START + V1)
    subject = capture.subject
    assert (subject.engine, subject.workload) == ("vllm", "serving a/b-7B")
    assert (subject.num_devices, subject.dtype, subject.kv_dtype) == (4, "bf16", "fp8")
    assert (subject.max_num_seqs, subject.max_num_batched_tokens) == (48, 8192)
    assert (subject.chunked_prefill, subject.block_size) == (True, 32)
    assert subject.kv_budget_bytes == 24.5 * 2**30
    stated = capture.meta["server_log"]
    assert stated["weights_bytes"] == 14.5 * 2**30
    assert (stated["kv_tokens"], stated["max_concurrency"]) == (464_928, 113.51)
    assert stated["version"] == "0.25.1"
    assert capture.events == ()


def test_a_namespace_of_version_0(tmp_path: Path) -> None:
    text = (
        "INFO 07-24 09:55:00 api_server.py:212] vLLM API server version 0.5.3\n"
        "INFO 07-24 09:55:00 api_server.py:213] args: Namespace(model='q/w', max_num_seqs=256, "
        "block_size=16, dtype='half', quantization=None, kv_cache_dtype='auto')\n"
        "INFO 07-24 09:55:20 model_runner.py:692] Loading model weights took 0.9281 GB\n"
        "INFO 07-24 09:55:30 gpu_executor.py:102] # GPU blocks: 345000, # CPU blocks: 21845\n"
    )
    capture = read(tmp_path, text)
    assert (capture.subject.max_num_seqs, capture.subject.block_size) == (256, 16)
    assert (capture.subject.dtype, capture.subject.kv_dtype) == ("fp16", None)
    assert capture.meta["server_log"]["kv_blocks"] == 345_000
    assert capture.meta["server_log"]["weights_bytes"] == 0.9281 * 2**30
    assert capture.meta["server_log"]["version"] == "0.5.3"


def test_quantized_weights_are_not_of_the_activations_dtype(tmp_path: Path) -> None:
    methods = {"awq": "int4", "fp8": "fp8", "modelopt_fp4": "nvfp4", "gguf": None}
    for method, dtype in methods.items():
        capture = read(tmp_path, START.replace("quantization=None", f"quantization={method}"))
        assert (capture.subject.dtype, capture.meta["server_log"]["quantization"]) == (
            dtype,
            method,
        )
    assert "quantization" not in read(tmp_path, START).meta["server_log"]


def test_the_models_name_tells_which_of_a_methods_formats(tmp_path: Path) -> None:
    text = START.replace("quantization=None", "quantization=compressed-tensors")
    for name, dtype in {"b-7B-NVFP4": "nvfp4", "b-7B-w4a16": "int4", "b-7B": None}.items():
        assert read(tmp_path, text.replace("a/b-7B", f"a/{name}")).subject.dtype == dtype


def test_kv_use_that_is_always_zero_while_requests_wait_is_not_believed(tmp_path: Path) -> None:
    text = periodic("02-03 10:00:10", 4, 2, 0.0) + periodic("02-03 10:00:20", 4, 2, 0.0)
    capture = read(tmp_path, text)
    assert series(capture.engine_samples, "kv_used_fraction") == []
    (event,) = [e for e in capture.events if e.kind == "not_observable"]
    assert event.data["what"] == "KV cache use"


def test_tokens_in_a_period_mean_that_something_ran(tmp_path: Path) -> None:
    text = periodic("02-03 10:00:10", 0, 0, 0.0)
    assert series(read(tmp_path, text).engine_samples, "running") == [(-10, 1), (0, 0)]


def test_nothing_is_logged_while_nothing_happens(tmp_path: Path) -> None:
    clocks = ("02-03 10:00:10", "02-03 10:00:20", "02-03 10:00:30", "02-03 10:10:00")
    text = "".join(periodic(c, r, 0, 1.0) for c, r in zip(clocks, (4, 4, 0, 6), strict=True))
    found = read(tmp_path, text).engine_samples
    # Lines come every 10 s; the one at 590 s speaks for the ten seconds before it alone.
    assert series(found, "running") == [(-10, 4), (0, 4), (10, 1), (20, 0), (580, 6), (590, 6)]
    assert series(found, "input_tokens_total")[-2:] == [(580, 1500), (590, 2000)]


@pytest.mark.parametrize(
    ("silent", "running"),
    [
        # Three requests made tokens up to the first line, and none after it: the record ends.
        (1, [(-10, 3), (0, 0)]),
        # A second such line tells how long the silence lasted.
        (2, [(-10, 3), (0, 0), (10, 0), (20, 0)]),
    ],
)
def test_the_last_line_of_work_opens_a_silence_of_unknown_length(
    silent: int, running: list[tuple[float, float]], tmp_path: Path
) -> None:
    lines = [periodic("02-03 10:00:10", 3, 0, 1.0)]
    nothing = periodic("02-03 10:00:20", 0, 0, 0.0, made=0.0).replace("50.0", "0.0")
    lines += [nothing.replace(":20 [", f":{20 + 10 * i} [") for i in range(silent)]
    found = read(tmp_path, "".join(lines)).engine_samples
    assert series(found, "running") == running
    assert series(found, "output_tokens_total")[-1][1] == 1000.0


def test_echoed_requests_are_not_evidence(tmp_path: Path) -> None:
    echo = (
        "INFO 02-03 10:00:12 [logger.py:40] Received request cmpl-1: prompt: 'Running: 99 reqs, "
        "Waiting: 99 reqs; torch.OutOfMemoryError: CUDA out of memory', params: x\n"
    )
    capture = read(tmp_path, V1 + echo)
    check_v1(capture.engine_samples)
    assert capture.events == ()
