"""A run of isolated phases: judged by its steps, nothing said of a load."""

from __future__ import annotations

import dataclasses

from capture_builders import MS, ON_CPU, gauges, request, step

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.isolated import HOW, NOTE, WHY
from stallscope.analyzers.result import Throughput
from stallscope.profiler.capture import Capture, Token
from stallscope.profiler.spec import Subject

PHASES = ("prefill", "decode", "prefill", "decode")
STEPS = tuple(
    step(i, i, 1.0, phase=PHASES[i], waiting=1 if i < 2 else 0, running=1, blocked_by="seqs")
    for i in range(4)
)
# Two waves of one request each: the second waits for half of its life.
REQUESTS = (request(0, 0, 0, 1, 2), request(1, 0, 2, 3, 4))


def run_of(subject: Subject) -> Capture:
    return Capture(
        subject=subject,
        steps=STEPS,
        requests=REQUESTS,
        tokens=(Token(0, MS), Token(0, 2 * MS)),
        engine_samples=gauges(waiting=(1, 1, 0, 0), running=(1, 1, 1, 1), kv_used_bytes=(1,) * 4),
    )


SERVED = run_of(ON_CPU)
APART = run_of(dataclasses.replace(ON_CPU, isolated_phases=True))


def test_the_same_rows_served_would_be_a_queue() -> None:
    found = diagnose(SERVED)
    assert found.verdict.load == "overloaded"
    assert set(found.latency) == {"ttft_s", "tpot_s", "itl_s", "e2e_s", "queue_s"}
    assert NOTE not in found.notes


def test_no_latency_throughput_or_queue_is_claimed() -> None:
    found = diagnose(APART)
    assert found.verdict.load == "served"
    assert found.latency == {}
    assert found.throughput == Throughput(None, None, None)
    names = {m.name for m in found.measures}
    assert not names & {"queue_wait_share", "in_flight", "preemptions", "decode_share_engine"}
    assert found.notes == (NOTE,)
    (load, *_) = found.not_observable
    assert load.what == "latency, throughput and queueing of a served load"
    assert (load.reason, load.how) == (WHY, HOW)


def test_rules_about_the_load_are_not_observable_with_the_reason() -> None:
    found = {r.id: (r.status, r.reason) for r in diagnose(APART).rules}
    assert found["scheduling"] == ("not observable", WHY)
    assert found["decode-focus"] == ("not observable", WHY)
    how = {n.what: n.how for n in diagnose(APART).not_observable}
    assert how["the scheduling rule"] == how["the decode-focus rule"] == HOW


def test_each_phase_keeps_its_steps() -> None:
    found = {p.phase: (p.count, round(p.time_s * 1e3, 6)) for p in diagnose(APART).phases}
    assert found == {"prefill": (2, 2.0), "decode": (2, 2.0), "all": (4, 4.0)}
