"""What a refused allocation was for, and what the allocator held besides."""

from __future__ import annotations

import pytest
from capture_builders import event

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis
from stallscope.profiler.capture import Capture
from stallscope.profiler.models import load_model
from stallscope.profiler.spec import Subject

MIB = 1 << 20


def refused(**data: object) -> Diagnosis:
    return diagnose(Capture(events=(event("oom", stage="warmup", **data),)))


def test_the_sampler_s_logits_call_for_fewer_rows() -> None:
    found = refused(bytes=304 * MIB, free_bytes=212 * MIB, buffer="logits", rows=256)
    assert (
        "out of memory while warming up, in the sampler's logits of 256 sequences (304 MiB asked "
        "for, 212 MiB free)"
    ) in found.verdict.sentence
    assert found.remedies[0].flag["vllm"].startswith("--max-num-seqs (lower)")
    assert "smaller dtype" not in str(found.remedies)


def test_rows_that_fit_into_what_was_asked_for() -> None:
    """4.12 GiB ÷ (151,936 × 4 B) = 4,423,816,315 ÷ 607,744 = 7,279."""
    model = load_model("qwen3-8b")
    asked = event("oom", stage="warmup", bytes=round(4.12 * 2**30), buffer="logits")
    found = diagnose(Capture(subject=Subject(model=model), events=(asked,)))
    assert "7,279 rows of fp32 over a vocabulary of 151,936" in found.verdict.sentence
    assert "rows of fp32" not in refused(bytes=MIB, buffer="logits").verdict.sentence


@pytest.mark.parametrize(
    ("unused", "is_said"),
    [(92 * MIB, True), (91 * MIB, False), (None, False)],  # 212 + 92 = 304
)
def test_enough_in_pieces_is_a_second_factor(unused: int | None, is_said: bool) -> None:
    more = {} if unused is None else {"unused_bytes": unused}
    found = refused(bytes=304 * MIB, free_bytes=212 * MIB, **more)
    assert any("but in pieces" in note for note in found.notes) is is_said
    assert found.verdict.bottleneck == "capacity"
