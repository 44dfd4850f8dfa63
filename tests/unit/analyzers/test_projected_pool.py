"""How many requests fill the KV pool, before it is full."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.projected_pool import observe_projected
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.spec import Subject

S = 1_000_000_000
SPAN = Span(0, 60 * S)


def queue(*moments: tuple[int, int, float], cap: int | None = None, told: bool = True) -> Capture:
    """Return moments of ten seconds: running, waiting, KV use."""
    samples = []
    for i, (running, waiting, used) in enumerate(moments):
        values = {"running": float(running), "waiting": float(waiting), "kv_used_fraction": used}
        values |= {"input_tokens_total": 240_000.0 * i, "output_tokens_total": 300.0 * i}
        samples += [
            EngineSample(10 * i * S, "0", n, v)
            for n, v in values.items()
            if told or n != "kv_used_fraction"
        ]
    return Capture(subject=Subject(max_num_seqs=cap), engine_samples=tuple(samples))


RAMP = ((10, 90, 0.193), (16, 84, 0.309), (22, 78, 0.425), (28, 72, 0.542), (34, 66, 0.654))


def test_a_ramp_of_long_prompts() -> None:
    """0.542 ÷ 28 = 1.936 % each, the largest of the first four: 51.7 of 100."""
    found = observe_projected(queue(*RAMP), SPAN)
    assert found is not None
    assert (found.full_at, found.in_flight) == (51, 100)
    diagnosis = diagnose(queue(*RAMP))
    assert (diagnosis.verdict.bottleneck, diagnosis.verdict.next_limit) == ("compute", "capacity")
    assert any("51 fill it, and 100 are in flight" in note for note in diagnosis.notes)


@pytest.mark.parametrize(
    ("capture", "is_short"),
    [
        (queue((10, 41, 0.2), (10, 41, 0.2)), True),  # 50 fill it, 51 are there
        (queue((10, 40, 0.2), (10, 40, 0.2)), False),
        (queue((10, 90, 0.2), (10, 90, 0.2), cap=51), True),
        (queue((10, 90, 0.2), (10, 90, 0.2), cap=50), False),  # so many never run at once
        (queue((4, 90, 0.2), (4, 90, 0.2)), True),
        (queue((3, 90, 0.2), (3, 90, 0.2)), False),
        (queue((51, 0, 0.9), (51, 0, 0.9)), False),  # nothing waits: nothing more comes
        (
            queue((10, 90, 0.2), (40, 60, 0.97), (40, 60, 0.97)),
            False,
        ),  # it was full: the pool itself tells
        (queue((10, 90, 0.2), (10, 90, 0.2), told=False), False),
        (queue((10, 90, 5e-324), (10, 90, 5e-324)), False),  # a tenth of it is 0
        (queue((10, 90, 5e-308), (10, 90, 5e-308)), False),  # 1 ÷ a tenth of it is infinite
    ],
)
def test_just_past_just_under_and_blind(capture: Capture, is_short: bool) -> None:
    assert (observe_projected(capture, SPAN) is not None) is is_short
