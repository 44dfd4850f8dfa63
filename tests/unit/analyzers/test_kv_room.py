"""A start for which some KV cache was left, but less than one longest request needs."""

from __future__ import annotations

from pathlib import Path

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis
from stallscope.profiler.server_log.reader import read_server_log

START = (
    "INFO 12-01 09:10:04 [core.py:455] Initializing a V1 LLM engine (v0.9.1) with config: "
    "model='a/b', dtype=torch.bfloat16, max_seq_len=32768, tensor_parallel_size=1\n"
)


def judged(folder: Path, refusal: str) -> Diagnosis:
    path = folder / "server.log"
    path.write_text(f"{START}ValueError: {refusal}\n", encoding="utf-8")
    return diagnose(read_server_log(path))


@pytest.mark.parametrize("bracket", ["(", ""])
def test_what_was_left_is_told_with_the_length_that_fits(bracket: str, tmp_path: Path) -> None:
    """1.93 GiB = 1.93 × 1,073,741,824 = 2,072,321,720 B."""
    found = judged(
        tmp_path,
        "To serve at least one request with the models's max seq len (32768), "
        f"{bracket}4.00 GiB KV cache is needed, which is larger than the available KV cache memory "
        "(1.93 GiB). Based on the available memory, the estimated maximum model length is 15824. "
        "Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.",
    )
    sentence = found.verdict.sentence
    assert "(4.00 GiB needed for one request, 1.93 GiB left)" in sentence
    assert "--max-model-len 15824 or --gpu-memory-utilization (higher)" in sentence
    assert "nothing was left" not in sentence + str(found.remedies)
    told = {m.name: (m.value, m.provenance, m.source) for m in found.measures}
    source = "the engine's refusal, in its log"
    assert told["kv_bytes_needed"] == (4 << 30, "measured", source)
    assert told["kv_bytes_left"] == (2_072_321_720, "measured", source)
    assert told["max_model_len_fitting"] == (15824, "measured", source)
    assert "--dtype bf16" not in str(found.remedies)  # they are bf16 already


def test_version_0_tells_the_length_alone(tmp_path: Path) -> None:
    found = judged(
        tmp_path,
        "The model's max seq len (32768) is larger than the maximum number of tokens that can be "
        "stored in KV cache (15824). Try increasing `gpu_memory_utilization`.",
    )
    assert "--max-model-len 15824" in found.verdict.sentence
    assert "nothing was left" not in found.verdict.sentence


def test_without_a_length_the_flag_names_its_direction(tmp_path: Path) -> None:
    text = (
        "(8.0 GiB KV cache is needed, which is larger than the available KV cache memory ({} GiB)."
    )
    assert "--max-model-len (lower) or" in judged(tmp_path, text.format("2.0")).verdict.sentence
    for none in ("0.0", "-1.25"):
        assert "nothing was left" in judged(tmp_path, text.format(none)).verdict.sentence


def test_no_blocks_at_all_is_nothing_left(tmp_path: Path) -> None:
    found = judged(tmp_path, "No available memory for the cache blocks. Try increasing `gpu_mem`")
    assert "nothing was left for the KV cache" in found.verdict.sentence
