"""Whether those that wait in the engine's queue wait for their first token."""

from __future__ import annotations

import pytest
from capture_builders import MS, ON_CPU, decodes, gauges, request, timed_linears
from trial_captures import trial

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis
from stallscope.profiler.capture import Capture
from stallscope.profiler.trial import Spread, Trial, trials_to_json


def judged(told: Trial | None) -> Diagnosis:
    """A log of 10 s: 60 run and 20 wait before a full pool, all the time."""
    samples = gauges(
        1000.0,
        running=(60.0,) * 11,
        waiting=(20.0,) * 11,
        kv_used_fraction=(0.995,) * 11,
    )
    meta = {} if told is None else {"trials": trials_to_json((told,)), "judged": 0}
    return diagnose(Capture(engine_samples=samples, meta={"printed_benchmark": meta}))


def client(mean: float | None, **more: object) -> Trial:
    """One hundred requests within 100 s."""
    return trial(ttft=Spread(mean, mean or 1.0), rate=1.0, **more)  # type: ignore[arg-type]


def share(found: Diagnosis) -> tuple[float, str, str | None] | None:
    told = {m.name: (m.value, m.provenance, m.side) for m in found.measures}
    return told.get("first_token_wait_share")


def effects(found: Diagnosis) -> set[str]:
    return {link.effect for link in found.verdict.chain}


def test_a_queue_of_those_that_had_begun_is_not_said_to_limit_ttft() -> None:
    """100 · 0.99 s before first tokens, of 20 · 10 s of waiting: 49.5 % at the most."""
    found = judged(client(0.99))
    assert share(found) == (pytest.approx(0.495), "bound", "upper")
    assert (found.verdict.bottleneck, found.verdict.limits.throughput) == ("capacity", "capacity")
    assert found.verdict.limits.ttft == "undetermined"
    assert "TTFT grows" not in effects(found)
    assert any("wait for the rest of their output" in e for e in effects(found))
    assert any(n.startswith("At most 50 % of the waiting was before") for n in found.notes)
    assert found.latency["ttft_s"].mean == 0.99


def test_a_queue_that_may_be_one_for_first_tokens_still_limits_ttft() -> None:
    """100 · 1.01 s of 200 s: 50.5 %."""
    found = judged(client(1.01))
    assert share(found) == (pytest.approx(0.505), "bound", "upper")
    assert found.verdict.limits.ttft == "capacity"
    assert "TTFT grows" in effects(found)
    assert not any("rest of their output" in e for e in effects(found))
    assert not any("before a first token" in n for n in found.notes)


@pytest.mark.parametrize(
    "told",
    [
        None,
        client(None),
        client(0.1, failed=1),  # those waited too, and no TTFT tells how long
        client(0.1, completed=79),  # 80 are in flight: others are served beside
        client(0.1, duration_s=9.0),  # the log is longer than the run
    ],
)
def test_nothing_follows_where_other_requests_may_have_waited(told: Trial | None) -> None:
    found = judged(told)
    assert share(found) is None
    assert found.verdict.limits.ttft == "capacity"
    assert "TTFT grows" in effects(found)


def put_back(ms: float, *, first_ms: float) -> Diagnosis:
    """Ten requests of 100 ms, of which 4 ms in the queue, and put back for `ms`."""
    rows = tuple(
        request(i, 0, 4, first_ms, 100)._replace(preemptions=1, preempted_ns=round(ms * MS))
        for i in range(10)
    )
    full = {"kv_used_bytes": 99, "kv_total_bytes": 100, "blocked_by": "kv"}
    steps = decodes(100, waiting=3, running=7, **full)
    return diagnose(Capture(ON_CPU, events=timed_linears(), requests=rows, steps=steps))


def test_rows_tell_when_those_put_back_had_their_first_token() -> None:
    """4 ms before admission and at most 1 before the first token, of 4 + 36."""
    found = put_back(36, first_ms=5)
    assert share(found) == (pytest.approx(5 / 40), "bound", "upper")
    assert "TTFT grows" not in effects(found)
    assert found.verdict.bottleneck == "capacity"
    assert found.verdict.limits.ttft != "capacity"


def test_those_put_back_before_their_first_token_wait_for_it() -> None:
    """4 ms before admission and at most 20 before the first token, of 4 + 36: 24 of 40."""
    found = put_back(36, first_ms=24)
    assert share(found) == (pytest.approx(24 / 40), "bound", "upper")
    assert found.verdict.limits.ttft == "capacity"
    assert "TTFT grows" in effects(found)
