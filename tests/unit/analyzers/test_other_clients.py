"""A benchmark's clients beside more in flight than they can have sent."""

from __future__ import annotations

import pytest
from trial_captures import trial

from stallscope.analyzers.benchmark.others import others_note
from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.trial import trials_to_json


def beside(
    clients: int | None, *in_flight: tuple[int, int], where: str = "printed_benchmark"
) -> Capture:
    """Gauges each second, running and waiting, beside the result of so many clients."""
    rows = tuple(
        EngineSample(i * 10**9, "0", name, float(value))
        for i, pair in enumerate(in_flight)
        for name, value in zip(("running", "waiting"), pair, strict=True)
    )
    trials = trials_to_json([trial(concurrency=clients)])
    return Capture(engine_samples=rows, meta={where: {"judged": 0, "trials": trials}})


@pytest.mark.parametrize("where", ["printed_benchmark", "benchmark"])
def test_eight_clients_cannot_have_sent_98_requests(where: str) -> None:
    capture = beside(8, (90, 5), (96, 2), (80, 0), where=where)
    note = (
        "The benchmark's 8 clients, with one request each, cannot have sent what the server had: "
        "up to 98 requests were in flight. Others were served too, or these are of another run; "
        "then the benchmark's latencies are not of this load."
    )
    assert others_note(capture) == (note,)
    assert note in diagnose(capture).notes


# A tenth and one more than 40 are 45.
@pytest.mark.parametrize(("running", "is_said"), [(45, False), (46, True)])
def test_a_request_or_two_that_are_left_are_no_others(running: int, is_said: bool) -> None:
    assert bool(others_note(beside(40, (running, 0), (20, 0)))) is is_said


def test_nothing_is_said_where_clients_or_gauges_are_not_told() -> None:
    assert others_note(beside(None, (98, 0), (98, 0))) == ()
    assert others_note(beside(8)) == ()
    assert others_note(Capture()) == ()
