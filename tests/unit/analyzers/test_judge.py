"""The procedure on one span: load first, then the limit that it calls for."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, ON_CPU, batch_one, decodes, gauges, request, samples

from stallscope.analyzers.judge import Judgement, admission_decision, judge, offered_concurrency
from stallscope.analyzers.load.queue_limits import Admission
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.prepared import prepare
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import Subject

T = Thresholds()


def judged(capture: Capture, t: Thresholds = T) -> Judgement:
    run = prepare(capture, t)
    return judge(capture, run.costs, cost=run.cost, missing=run.why_no_budget, span=run.span, t=t)


def sampled(waiting: float, running: float, subject: Subject | None = None) -> Capture:
    rows = gauges(waiting=(waiting,) * 5, running=(running,) * 5)
    return Capture(subject=subject or Subject(), engine_samples=rows)


def test_a_served_run_is_judged_by_its_step() -> None:
    found = judged(batch_one())
    assert (found.load, found.bottleneck, found.admission) == ("served", "bandwidth", None)


def test_a_queue_is_judged_by_its_limit_and_not_by_the_step() -> None:
    """The same step, with one request waiting of four in the system."""
    steps = decodes(60, waiting=1, running=3, blocked_by="seqs", device_ns=MS, host_ns=0)
    found = judged(dataclasses.replace(batch_one(), steps=steps))
    assert (found.load, found.bottleneck) == ("overloaded", "scheduling")
    one_of_six = decodes(60, waiting=1, running=5, blocked_by="seqs", device_ns=MS, host_ns=0)
    found = judged(dataclasses.replace(batch_one(), steps=one_of_six))  # 0.167 < 0.20
    assert (found.load, found.bottleneck, found.admission) == ("served", "bandwidth", None)


def test_idle_and_underloaded_are_none_with_the_numbers() -> None:
    half = (request(0, 0, 0, 5, 20), request(1, 60, 60, 65, 80))
    found = judged(Capture(requests=half))  # 40 of 80 ms with nothing in flight
    assert (found.load, found.bottleneck) == ("underloaded", "none")
    assert found.decision.reason == "nothing was in flight 50 % of the time and nothing waited"
    rare = (request(0, 0, 0, 1, 2), request(1, 98, 99, 99.5, 100))
    found = judged(Capture(requests=rare))  # 96 of 100 ms; 1 of 4 ms waited
    assert (found.load, found.bottleneck) == ("idle", "none")
    assert "nothing waited" not in found.decision.reason
    assert "requests waited 25 % of their time" in found.decision.reason


@pytest.mark.parametrize(("running", "bottleneck"), [(3.9, "client"), (4.0, "undetermined")])
def test_client_where_offered_and_arrived_have_separate_sources(
    running: float, bottleneck: str
) -> None:
    assert judged(sampled(0, running, Subject(concurrency=8))).bottleneck == bottleneck


def test_client_whatever_the_load() -> None:
    found = judged(sampled(0, 0, Subject(concurrency=8)))
    assert (found.load, found.bottleneck) == ("idle", "client")


def test_client_by_request_rows_too() -> None:
    """One of eight clients at a time."""
    rows = tuple(request(i, 10 * i, 10 * i, 10 * i + 1, 10 * i + 10) for i in range(6))
    capture = dataclasses.replace(batch_one(), requests=rows)
    assert judged(capture).bottleneck == "bandwidth"
    offered = dataclasses.replace(ON_CPU, concurrency=8)
    found = judged(dataclasses.replace(capture, subject=offered))
    assert (found.load, found.bottleneck) == ("served", "client")


@pytest.mark.parametrize(
    ("engine", "meta"), [("builtin", {}), ("transformers", {"load_generator": "stallscope run"})]
)
def test_no_client_verdict_on_the_load_of_our_own_generator(
    engine: str, meta: dict[str, str]
) -> None:
    """Its clients are in flight by construction until they have nothing left to send."""
    rows = (request(0, 0, 0, 1, 10),)
    subject = Subject(concurrency=8, engine=engine)
    capture = Capture(subject=subject, requests=rows, meta=meta)
    assert offered_concurrency(capture) is None
    assert judged(capture).bottleneck != "client"


def test_steps_that_saw_no_queue_are_judged_whatever_requests_say() -> None:
    """Admitted after two thirds of their time, and no step saw them wait."""
    rows = tuple(request(i, 10 * i, 10 * i + 20, 10 * i + 21, 10 * i + 30) for i in range(4))
    steps = decodes(60, waiting=0, running=1, device_ns=MS, host_ns=0)
    capture = dataclasses.replace(batch_one(), steps=steps, requests=rows)
    found = judged(capture)
    assert (found.load, found.bottleneck, found.admission) == ("overloaded", "bandwidth", None)


def test_a_queue_that_stands_now_and_then_is_a_weaker_reason() -> None:
    always = admission_decision(Admission({"seqs": 1.0}, 0.5, "measured", "a test"))
    rarely = admission_decision(Admission({"seqs": 1.0}, 0.1, "measured", "a test"))
    assert always.quality == 1.0
    assert rarely.quality == pytest.approx(0.2)


def test_limits_of_one_class_add_up() -> None:
    shares = {"tokens": 0.3, "prefill": 0.25, "kv": 0.45}
    decision = admission_decision(Admission(shares, 1.0, "measured", "a test"))
    assert (decision.bottleneck, decision.limit) == ("compute", "tokens")
    assert (decision.share, decision.next_class) == (pytest.approx(0.55), "capacity")


def test_unknown_demand_is_judged_by_the_step() -> None:
    found = judged(batch_one())
    assert (found.demand.queued_share, found.bottleneck) == (None, "bandwidth")


def test_nothing_to_judge_by_is_undetermined_between_candidates() -> None:
    found = judged(Capture(requests=(request(0, 0, 0, 1, 10),)))
    assert found.bottleneck == "undetermined"
    assert found.decision.between == ("bandwidth", "compute", "host")


def test_slow_clocks_override_the_step() -> None:
    """At half the memory clock 0.4 of floor explain 0.8 of the step, past 0.75."""
    subject = dataclasses.replace(ON_CPU, device=dataclasses.replace(ON_CPU.device, is_cpu=False))  # type: ignore[type-var]
    clocks = (*samples("memory_clock_hz", 1e9), *samples("memory_clock_max_hz", 2e9))
    slow = decodes(60, 1.25, device_ns=MS)  # the roofline's 0.5 ms of 1.25 ms
    found = judged(Capture(subject=subject, steps=slow, device_samples=clocks))
    assert found.bottleneck == "device"
    assert found.decision.reason == "clocks ran at 50 % (memory) of nominal"
    assert judged(Capture(subject=subject, steps=slow)).bottleneck == "bandwidth"


def test_thresholds_move_the_load() -> None:
    steps = decodes(60, waiting=1, running=5, blocked_by="seqs")
    capture = dataclasses.replace(batch_one(), steps=steps)
    assert judged(capture, Thresholds(queue_wait_share=0.16)).load == "overloaded"


def test_an_empty_span_judges_nothing() -> None:
    run = prepare(Capture(requests=(request(0, 0, None, None, None),)), T)
    assert run.span == Span(0, 0)
    found = judged(run.capture)
    assert (found.load, found.bottleneck) == ("served", "undetermined")
