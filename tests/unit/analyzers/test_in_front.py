"""First tokens that came to clients much later than the server made them."""

from __future__ import annotations

import dataclasses

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.in_front import observe_in_front
from stallscope.analyzers.load.span import Span
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.spec import Subject

S = 1_000_000_000
SPAN = Span(0, 100 * S)


def joined(
    client_s: float,
    *,
    server_s: float = 0.5,
    count: int = 40,
    whole_s: float = 5.0,
    waiting: int = 0,
) -> Capture:
    """Return a server's gauges over 100 s beside the means that 16 clients measured meanwhile.

    Of 200 requests of 5 s in 100 s, 10 were in flight on average (Little's law).
    """
    samples = []
    for second in range(101):
        counted = count * second / 100
        values = {
            "running": 9.0,
            "waiting": float(waiting),
            "kv_used_fraction": 0.1,
            "output_tokens_total": 100.0 * second,
            "ttft_s_sum": 7.0 + server_s * counted,
            "ttft_s_count": 3.0 + counted,
        }
        samples += [EngineSample(second * S, "0", name, value) for name, value in values.items()]
    trial = {
        "source": "bench.json",
        "concurrency": 16,
        "completed": 200,
        "duration_s": 100.0,
        "latency": {"ttft_s": {"mean": client_s}, "e2e_s": {"mean": whole_s}},
    }
    return Capture(
        subject=Subject(engine="vllm", concurrency=16),
        engine_samples=tuple(samples),
        meta={"ended": {}, "benchmark": {"trials": [trial], "judged": 0}},
    )


@pytest.mark.parametrize(
    ("client_s", "server_s", "is_seen"),
    [
        (1.0, 0.5, True),  # twice as long
        (0.99, 0.5, False),
        (0.151, 0.05, True),  # 0.1 s
        (0.149, 0.05, False),
    ],
)
def test_twice_as_long_and_a_tenth_of_a_second(
    client_s: float, server_s: float, is_seen: bool
) -> None:
    found = observe_in_front(joined(client_s, server_s=server_s), SPAN)
    assert (found is not None) is is_seen
    if found is not None:
        assert found.seconds == pytest.approx(client_s - server_s)
        assert found.share == pytest.approx((client_s - server_s) / 5.0)


@pytest.mark.parametrize(("count", "is_seen"), [(5, True), (4, False), (0, False)])
def test_a_server_that_counted_hardly_any_tells_nothing(count: int, is_seen: bool) -> None:
    assert (observe_in_front(joined(3.0, count=count), SPAN) is not None) is is_seen


def test_without_the_clients_or_the_servers_count_nothing_is_said() -> None:
    capture = joined(3.0)
    silent = tuple(s for s in capture.engine_samples if not s.name.startswith("ttft"))
    for blind in (
        Capture(engine_samples=capture.engine_samples),
        Capture(engine_samples=silent, meta=capture.meta),
    ):
        assert observe_in_front(blind, SPAN) is None


@pytest.mark.parametrize(
    ("client_s", "waiting", "is_decided"),
    [
        (1.51, 0, True),  # (1.51 - 0.5) / 5 = 0.202 of a request's time
        (1.49, 0, False),  # 0.198
        (1.51, 1, False),  # one of ten waits in the server itself: that is seen first
    ],
)
def test_a_fifth_of_the_time_in_front_of_an_empty_queue_decides(
    client_s: float, waiting: int, is_decided: bool
) -> None:
    diagnosis = diagnose(joined(client_s, waiting=waiting))
    verdict = diagnosis.verdict
    assert (verdict.between == ("host", "client")) is is_decided
    assert any(
        "passed in front of it, in the load generator, a proxy" in n for n in diagnosis.notes
    )
    (measure,) = (m for m in diagnosis.measures if m.name == "ttft_in_front")
    assert measure.value == pytest.approx(client_s - 0.5)
    if is_decided:
        assert "requests wait 20 % of their time in front of the server, whose own queue" in (
            verdict.sentence
        )


@pytest.mark.parametrize(
    ("cores", "bottleneck"),
    [
        (1.6, "host"),
        (0.91, "host"),
        (0.89, "undetermined"),
        (0.51, "undetermined"),
        (0.49, "client"),
        (None, "undetermined"),
    ],
)
def test_the_frontends_core_tells_the_host_from_the_client(
    cores: float | None, bottleneck: str
) -> None:
    capture = joined(3.0)  # (3 - 0.5) / 5 = half of a request's time
    name = "frontend_cpu_s_total"
    told = () if cores is None else (0, 50, 100)
    cpu = tuple(EngineSample(s * S, "0", name, 60.0 + s * (cores or 0.0)) for s in told)
    capture = dataclasses.replace(capture, engine_samples=(*capture.engine_samples, *cpu))
    found = diagnose(capture)
    assert found.verdict.bottleneck == bottleneck
    assert found.verdict.confidence <= 0.75
    if bottleneck == "host":
        assert found.verdict.sentence.startswith("The host limits this run: requests wait 50 %")
        assert found.remedies[0].flag["vllm"] == "--api-server-count"
    if bottleneck == "client":
        assert "so they wait in the load generator" in found.verdict.sentence
        assert found.verdict.confidence <= 0.6


def test_clients_that_wait_in_front_did_send() -> None:
    """Of 40 clients ten are in flight at the server; the other 30 wait for it, by their clocks."""
    capture = joined(3.0)
    few = dataclasses.replace(capture, subject=Subject(engine="vllm", concurrency=40))
    assert diagnose(few).verdict.between == ("host", "client")
    near = dataclasses.replace(joined(0.6), subject=Subject(engine="vllm", concurrency=40))
    assert diagnose(near).verdict.bottleneck == "client"
