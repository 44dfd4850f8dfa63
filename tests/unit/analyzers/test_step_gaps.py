"""Time between steps is told from the steps' own, by hand."""

from __future__ import annotations

from step_rows import decode, prefill

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.step.budget import cost_steps
from stallscope.analyzers.step_gaps import gap_notes
from stallscope.profiler.capture import Capture


def test_a_fifth_of_the_time_between_steps_is_told() -> None:
    """Four decodes of 10 ms; pauses of 2.5 ms make a fifth of each later 12.5."""
    quick = [decode(i * 12.4, i * 12.4 + 10, 99, id=i) for i in range(4)]
    assert gap_notes(cost_steps(quick, None)[1:]) == ()
    slow = [decode(i * 12.5, i * 12.5 + 10, 99, id=i) for i in range(4)]
    (said,) = gap_notes(cost_steps(slow, None)[1:])
    assert said.startswith(
        "Of decode's 0.0375 s, 20 % passes between steps: a step itself takes 10 ms"
    )


def test_pauses_between_steps_are_no_ones_decode() -> None:
    """20 ms of prefill, a second of nothing, ten decodes of 10 ms every 100: 100 of 120 ms."""
    steps = (
        prefill(0, 20, 512, id=0),
        *(decode(1020 + i * 100, 1030 + i * 100, 512 + i, id=i + 1) for i in range(10)),
    )
    found = {m.name: m.value for m in diagnose(Capture(steps=steps)).measures}
    assert round(found["decode_share_engine"], 3) == round(100 / 120, 3)
    assert round(found["decode_share_requests"], 3) == round(100 / 120, 3)
