"""SGLang's batches, of every version, with every field."""

from __future__ import annotations

from pathlib import Path

from log_files import S, read, series

NEW = """\
[2025-11-11 04:28:01] Prefill batch, #new-seq: 10, #new-token: 4096, #cached-token: 10, token \
usage: 0.02, #running-req: 4, #queue-req: 186, 
[2025-11-11 04:28:02] Decode batch, #running-req: 14, #token: 5000, token usage: 0.05, cuda graph: \
True, gen throughput (token/s): 700.0, #queue-req: 180
[2025-11-11 04:28:04] Decode batch, #running-req: 14, #token: 5560, token usage: 0.06, cuda graph: \
True, gen throughput (token/s): 280.0, #queue-req: 180
"""


def check(text: str, folder: Path) -> None:
    found = read(folder, text).engine_samples
    assert series(found, "running") == [(0, 14), (1, 14), (3, 14)]  # the batch's new ones run
    assert series(found, "waiting") == [(0, 186), (1, 180), (3, 180)]
    assert series(found, "kv_used_fraction") == [(0, 0.02), (1, 0.05), (3, 0.06)]
    assert series(found, "input_tokens_total") == [(0, 4096), (1, 4096), (3, 4096)]
    assert series(found, "output_tokens_total") == [(0, 0), (1, 0), (3, 560)]


def test_new_and_old_spellings(tmp_path: Path) -> None:
    check(NEW, tmp_path)
    check(NEW.replace("batch,", "batch."), tmp_path)
    check(NEW.replace("] ", " TP0] "), tmp_path)


def test_other_tensor_parallel_ranks_say_the_same_again(tmp_path: Path) -> None:
    check(NEW.replace("] ", " TP0] ") + NEW.replace("] ", " TP1] "), tmp_path)


def test_data_parallel_ranks_stay_apart(tmp_path: Path) -> None:
    text = NEW.replace("] ", " DP0 TP0] ") + NEW.replace("] ", " DP1 TP0] ")
    found = read(tmp_path, text).engine_samples
    assert [value for _, value in series(found, "running", "0")] == [14, 14, 14]
    assert [value for _, value in series(found, "running", "1")] == [14, 14, 14]


def test_ranks_of_dp_attention_are_engines_of_their_own(tmp_path: Path) -> None:
    """DP attention numbers its ranks alike, DP9 TP9, and expert ranks may stand behind."""
    lines = NEW.replace("] ", " DP9 TP9] ") + NEW.replace("] ", " DP1 TP1 EP1] ")
    found = read(tmp_path, lines + NEW.replace("] ", " DP3 PP0 ATTN_CP0 TP3] ")).engine_samples
    assert {s.engine for s in found} == {"1", "3", "9"}
    for engine in ("1", "3", "9"):
        assert [value for _, value in series(found, "running", engine)] == [14, 14, 14]
        assert [value for _, value in series(found, "input_tokens_total", engine)] == [4096] * 3


def test_later_pipeline_stages_and_context_ranks_say_the_same_again(tmp_path: Path) -> None:
    for first, other in (("PP0 TP0", "PP1 TP0"), ("PP0 ATTN_CP0 TP0", "PP0 ATTN_CP1 TP1")):
        check(NEW.replace("] ", f" {first}] ") + NEW.replace("] ", f" {other}] "), tmp_path)


def test_a_collectors_stamp_before_the_prefix_hides_no_rank(tmp_path: Path) -> None:
    ranks = [NEW.replace("] ", f" TP{rank}] ") for rank in (0, 1)]
    stamped = [line for text in ranks for line in text.splitlines()]
    before = "1779264164792\t2026-05-20T08:02:44.792Z\t"
    found = read(tmp_path, "".join(f"{before}{line}\n" for line in stamped)).engine_samples
    assert [value for _, value in series(found, "running")] == [14, 14, 14]


def test_a_retraction_counts_once_however_many_processes_say_it(tmp_path: Path) -> None:
    said = "KV cache pool is full. Retract requests. #retracted_reqs: 2, #new_tokens_gained: 96\n"
    stamps = [f"[2025-11-11 04:28:05 DP{dp} TP{tp}] " for dp in (0, 1) for tp in (0, 1)]
    events = read(tmp_path, NEW + "".join(f"{stamp}{said}" for stamp in stamps)).events
    assert [dict(e.data) for e in events if e.kind == "preempt"] == [
        {"engine": "0", "count": 2},
        {"engine": "1", "count": 2},
    ]


def test_the_fullest_pool_of_a_hybrid_model_counts(tmp_path: Path) -> None:
    text = (
        "[2026-05-24 03:51:44 TP0] Decode batch, #running-req: 4, #full token: 2642688, full token "
        "usage: 0.40, #swa token: 14592, swa token usage: 0.96, cuda graph: True, gen throughput "
        "(token/s): 429.34, #queue-req: 3\n"
    )
    found = read(tmp_path, text).engine_samples
    assert series(found, "kv_used_fraction") == [(0, 0.96)]
    assert series(found, "waiting") == [(0, 3)]


def test_version_0_1(tmp_path: Path) -> None:
    text = (
        "new fill batch. #seq: 1. #cached_token: 757. #new_token: 9. #remaining_req: 4. "
        "#running_req: 2. tree_cache_hit_rate: 80.83%.\n"
        "#running-req: 5, #token: 1938, token usage: 0.24, #queue-req: 0\n"
    )
    found = read(tmp_path, text).engine_samples
    # Without a stamp the order is all there is: two lines of one second.
    assert series(found, "running") == [(0, 3), (0.5, 5)]
    assert series(found, "waiting") == [(0, 4), (0.5, 0)]
    assert series(found, "input_tokens_total") == [(0, 9), (0.5, 9)]
    assert series(found, "kv_used_fraction") == [(0.5, 0.24)]


def test_a_prompt_that_finds_nobody_ends_a_silence(tmp_path: Path) -> None:
    later = NEW.splitlines()[0].replace("04:28:01", "04:38:01").replace("req: 4,", "req: 0,")
    found = read(tmp_path, f"{NEW}{later}\n").engine_samples
    # Decode lines came 2 s apart: the next was due 5 s in, so that decoding had ended by then.
    assert series(found, "running")[2:] == [(3, 14), (5, 0), (600, 10)]
    assert series(found, "waiting")[2:] == [(3, 180), (5, 0), (600, 186)]


def test_the_servers_own_warm_up_is_left_out(tmp_path: Path) -> None:
    warm_up = NEW.splitlines()[0].replace("04:28:01", "04:27:00")
    ready = "[2025-11-11 04:28:01] The server is fired up and ready to roll!"
    found = read(tmp_path, f"{warm_up}\n{ready}\n{NEW}").engine_samples
    assert [t for t, _ in series(found, "running")] == [61, 62, 64]


def test_retraction_is_preemption(tmp_path: Path) -> None:
    text = NEW + (
        "[2025-11-11 04:28:05] KV cache pool is full. Retract requests. #retracted_reqs: 2, "
        "#new_token_ratio: 0.9998 -> 1.0000\n"
        "[2025-11-11 04:28:06] Decode out of memory happened. #retracted_reqs: 1, "
        "#new_token_ratio: 0.9998 -> 1.0000\n"
    )
    events = read(tmp_path, text).events
    assert [(e.kind, e.t_ns / S, e.data["count"]) for e in events] == [
        ("preempt", 4, 2),
        ("preempt", 5, 1),
    ]


def test_settings(tmp_path: Path) -> None:
    text = (
        "[2026-02-09 14:38:13] server_args=ServerArgs(model_path='m/L-3B', tokenizer_path='m/L', "
        "dtype='auto', quantization=None, kv_cache_dtype='fp8_e5m2', max_running_requests=48, "
        "page_size=16, tp_size=2, pp_size=1)\n"
        "[2026-02-09 14:38:30] max_total_num_tokens=25169, chunked_prefill_size=8192, "
        "max_prefill_tokens=16384, max_running_requests=32, context_len=35000\n"
    )
    capture = read(tmp_path, text + NEW)
    subject = capture.subject
    assert (subject.engine, subject.workload) == ("sglang", "serving m/L-3B")
    assert (subject.max_num_seqs, subject.max_num_batched_tokens) == (32, 8192)
    assert (subject.num_devices, subject.dtype, subject.kv_dtype) == (2, None, "fp8")
    assert subject.block_size == 16
    assert capture.meta["server_log"]["kv_tokens"] == 25169
