"""Starts that failed for memory: what helps depends on the stage."""

from __future__ import annotations

import pytest
from capture_builders import event

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture, Event


def actions(*events: Event) -> tuple[str, list[str], list[str]]:
    found = diagnose(Capture(events=events))
    helps = [remedy.flag.get("vllm", "") for remedy in found.remedies]
    return found.verdict.sentence, helps, [w.action for w in found.wont_help]


@pytest.mark.parametrize(
    ("stage", "words", "first"),
    [
        ("start", "starting up", "--gpu-memory-utilization (lower) or --max-model-len"),
        ("weights", "loading the weights", "--quantization fp8"),
        ("starting", "starting up, at a stage", "--max-num-batched-tokens"),
        ("profile", "measuring how much memory is left", "--max-num-batched-tokens"),
        ("warmup", "warming up", "--max-num-batched-tokens"),
        ("graphs", "capturing CUDA graphs", "--gpu-memory-utilization (lower) or --max-model-len"),
        ("serving", "serving requests", "--max-num-batched-tokens"),
    ],
)
def test_each_stage_has_its_words_and_its_remedy(stage: str, words: str, first: str) -> None:
    sentence, helps, useless = actions(event("oom", stage=stage, bytes=304 * 2**20))
    assert f"out of memory while {words}" in sentence
    assert "304 MiB asked for" in sentence
    assert helps[0] == first
    # Before the pool is allocated, a smaller one frees nothing.
    early = ["asking for a smaller KV cache"] if stage in ("weights", "profile") else []
    assert useless == ["giving the KV cache more room", "raising the sequence cap", *early]


def test_no_room_for_the_cache_asks_for_a_larger_share() -> None:
    sentence, helps, useless = actions(event("oom", stage="kv_sizing"))
    assert "out of memory while sizing the KV cache" in sentence
    assert helps[0] == "--gpu-memory-utilization (higher) or --max-model-len (lower)"
    assert useless == ["raising the sequence cap"]


def test_a_start_that_was_killed_is_less_sure_and_gets_the_remedies_of_its_stage() -> None:
    data = {"sentence": "Killed.", "blocks": ["verdict"], "stage": "weights"}
    killed = event("check", **data, most_confidence=0.6, **{"class": "capacity"})
    found = diagnose(Capture(events=(killed,)))
    assert (found.verdict.bottleneck, found.verdict.confidence) == ("capacity", 0.6)
    assert [r.flag.get("vllm") for r in found.remedies][0] == "--quantization fp8"


def test_where_memory_is_measured_only_weights_and_steps_can_be_smaller() -> None:
    _, helps, _ = actions(event("oom", stage="profile"))
    assert len(helps) == 3
    assert helps[0] == "--max-num-batched-tokens"
    assert helps[1] == "--quantization fp8"
    assert "--tensor-parallel-size" in helps[2]
    assert not any("--gpu-memory-utilization" in flag for flag in helps)
