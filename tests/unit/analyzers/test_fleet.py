"""Replicas compared: who is held, who has room, who is slow; lines checked on both sides."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.fleet import Judged, fleet_of
from stallscope.analyzers.result import Fleet, Replica
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.spec import Subject

_S = 1_000_000_000
SECONDS = 20


def played(
    name: str,
    *,
    running: float = 10,
    waiting: float = 0,
    kv: float | None = 0.3,
    rate: float | None = 400,
    model: str = "m",
) -> Judged:
    """A replica with steady gauges, sampled every second."""
    values = {"running": running, "waiting": waiting}
    if kv is not None:
        values["kv_used_fraction"] = kv
    samples = []
    for second in range(SECONDS + 1):
        told = dict(values)
        if rate is not None:
            told["output_tokens_total"] = rate * second
        samples += [EngineSample(second * _S, "0", n, v) for n, v in told.items()]
    subject = Subject(engine="vllm", workload=f"serving {model}", max_num_seqs=64)
    capture = Capture(subject=subject, engine_samples=tuple(samples))
    return Judged(name, capture, diagnose(capture))


def fleet(*judged: Judged) -> tuple[dict[str, Replica], Fleet]:
    ranked, found = fleet_of(judged, Thresholds())
    return {row.replica: row for row in ranked}, found


FULL = {"running": 12.0, "waiting": 30.0, "kv": 0.998}


def test_a_replica_in_numbers() -> None:
    rows, _ = fleet(played("a", running=10, waiting=5, kv=0.5, rate=400), played("b"))
    row = rows["a"]
    assert (row.running, row.waiting, row.in_flight, row.kv_used) == (10, 5, 15, 0.5)
    assert row.output_tokens_per_s == pytest.approx(400)


def test_what_a_replica_does_not_tell_stays_unknown() -> None:
    rows, found = fleet(played("a", kv=None, rate=None), played("b", kv=None, rate=None))
    assert rows["a"].kv_used is None
    assert rows["a"].output_tokens_per_s is None
    assert found.stragglers == ()


def test_the_most_held_comes_first() -> None:
    rows, _ = fleet(
        played("idle", running=0, rate=0),
        played("calm"),
        played("held", **FULL),
        played("worse", running=12, waiting=60, kv=0.998),
    )
    assert list(rows) == ["worse", "held", "calm", "idle"]
    assert rows["worse"].bottleneck == "capacity"
    assert rows["idle"].bottleneck == "none"


@pytest.mark.parametrize(("rate", "is_slow"), [(299, True), (301, False)])
def test_a_straggler_is_slower_than_three_quarters_of_the_others(
    rate: float, is_slow: bool
) -> None:
    """The others make 40 tokens a second for each of 10 running requests: the line is at 300."""
    rows, found = fleet(played("a"), played("b"), played("c", rate=rate))
    assert found.stragglers == (("c",) if is_slow else ())
    assert ("Slower than the others: c." in found.sentence) is is_slow
    if is_slow:
        assert rows["c"].remark == (
            "slow: 29.9 tokens/s for each running request, others 40, at no more load"
        )


@pytest.mark.parametrize(("running", "is_slow"), [(12.5, True), (12.6, False)])
def test_a_larger_batch_excuses_a_slow_replica(running: float, is_slow: bool) -> None:
    """The others run 10: a quarter more is 12.5."""
    _, found = fleet(played("a"), played("b"), played("c", running=running, rate=200))
    assert bool(found.stragglers) is is_slow


def test_a_full_pool_explains_why_a_replica_is_slow() -> None:
    rows, found = fleet(played("a", **FULL, rate=120), played("b"))
    assert rows["a"].bottleneck == "capacity"
    assert found.stragglers == ()
    _, found = fleet(played("a", running=12, waiting=30, kv=0.3, rate=120), played("b", running=12))
    assert found.stragglers == ("a",)


def test_an_idle_replica_is_no_straggler() -> None:
    _, found = fleet(played("a"), played("b", running=0.9, rate=1))
    assert found.stragglers == ()


@pytest.mark.parametrize(
    ("held", "free", "is_uneven"),
    [
        ({"running": 8, "waiting": 2}, {}, True),  # 2 of 10 wait: 20 %
        ({"running": 8.1, "waiting": 1.9}, {}, False),  # 19 %
        (FULL, {"waiting": 0.49, "running": 9.51}, True),  # 4.9 % wait
        (FULL, {"waiting": 0.51, "running": 9.49, "kv": 0.9}, False),  # 5.1 %
        (FULL, {"kv": 0.94}, True),
        (FULL, {"kv": 0.96}, False),
    ],
)
def test_a_queue_beside_room_is_named(
    held: dict[str, float], free: dict[str, float], is_uneven: bool
) -> None:
    _, found = fleet(played("a", **held), played("b", **free))  # type: ignore[arg-type]
    said = found.imbalance or ""
    assert ("a has" in said and "while b has room" in said) is is_uneven


@pytest.mark.parametrize(("most", "said"), [(10.0, True), (9.9, False)])
def test_an_uneven_load_without_a_queue(most: float, said: bool) -> None:
    _, found = fleet(played("a", running=most), played("b", running=5))
    assert (found.imbalance is not None) is said
    if said:
        assert found.imbalance == ("The load is uneven: 10.0 requests in flight on a, 5.0 on b.")


def test_replicas_of_other_models_are_not_compared() -> None:
    _, found = fleet(played("a", **FULL, model="x"), played("b", model="y", rate=4000))
    assert found.imbalance is None
    assert found.stragglers == ()


def test_a_common_limit_holds_half_of_the_replicas() -> None:
    _, found = fleet(played("a", **FULL), played("b", **FULL), played("c"), played("d"))
    assert found.common_limit == "capacity"
    assert found.sentence.startswith("Capacity limits 2 of 4 replicas (a, b); ")
    _, found = fleet(played("a", **FULL), played("b"), played("c"))
    assert found.common_limit is None


def test_many_names_are_cut_short() -> None:
    _, found = fleet(*(played(f"r{i}", running=0, rate=0) for i in range(7)))
    assert found.sentence == "Nothing limits 7 of 7 replicas (r0, r1, r2, r3 and 3 more)."


def test_counters_of_two_engines_add_up() -> None:
    one = played("a", rate=100)
    more = tuple(s._replace(engine="1") for s in one.capture.engine_samples)
    both = replace(one.capture, engine_samples=(*one.capture.engine_samples, *more))
    rows, _ = fleet(Judged("a", both, one.diagnosis), played("b"))
    assert rows["a"].output_tokens_per_s == pytest.approx(200)
    assert rows["a"].running == 20


def test_a_replica_that_stands_still_comes_first_and_is_not_called_slow() -> None:
    """No token in twenty seconds, at the cap; the others make 400 a second."""
    stuck = played("stuck", running=64, waiting=20, rate=0)
    moving = [played("a"), played("b", **FULL)]
    assert stuck.diagnosis.verdict.limit != "stalled"  # in twenty seconds: a step may be as long
    longer = replace(stuck.capture, engine_samples=doubled(stuck.capture))
    rows, found = fleet(Judged("stuck", longer, diagnose(longer)), *moving)
    assert next(iter(rows)) == "stuck"
    assert rows["stuck"].limit == "stalled"
    assert found.sentence.startswith("1 of 3 replicas stands still (stuck); ")
    assert found.stragglers == ()
    assert found.common_limit is None


def doubled(capture: Capture) -> tuple[EngineSample, ...]:
    """The same samples at half the pace."""
    return tuple(s._replace(t_ns=2 * s.t_ns) for s in capture.engine_samples)
