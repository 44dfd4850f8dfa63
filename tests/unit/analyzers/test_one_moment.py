"""Gauges of one moment: judged for what they show, and with little confidence."""

from __future__ import annotations

import pytest

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.sequence_cap import decoding_cap
from stallscope.profiler.spec import Subject


def moment(subject: Subject | None = None, **values: float) -> Capture:
    samples = tuple(EngineSample(5, "0", name, value) for name, value in values.items())
    return Capture(subject=subject or Subject(engine="vllm"), engine_samples=samples)


def test_nothing_in_flight_is_idle() -> None:
    found = diagnose(moment(running=0, waiting=0))
    assert (found.verdict.bottleneck, found.verdict.load) == ("none", "idle")
    assert found.verdict.confidence <= 0.65
    assert found.verdict.sentence == (
        "Nothing limits this run: nothing was in flight at the one moment that was read and "
        "nothing waited."
    )
    assert (found.windows, found.capture.duration_s) == ((), None)


@pytest.mark.parametrize(
    ("values", "bottleneck"),
    [
        ({"running": 32, "waiting": 8, "kv_used_fraction": 0.3}, "scheduling"),  # 8 of 40: 20 %
        ({"running": 31, "waiting": 8, "kv_used_fraction": 0.96}, "capacity"),
        ({"running": 32, "waiting": 7, "kv_used_fraction": 0.3}, "undetermined"),  # 7 of 39: 18 %
        ({"running": 20, "waiting": 8, "kv_used_fraction": 0.3}, "undetermined"),  # under both
    ],
)
def test_a_queue_is_judged_by_what_stood_at_its_cap(
    values: dict[str, float], bottleneck: str
) -> None:
    subject = Subject(engine="vllm", max_num_seqs=32)
    assert diagnose(moment(subject, **values)).verdict.bottleneck == bottleneck


def test_what_was_read_once_is_told_of_that_moment() -> None:
    """8 of 40 wait: a fifth of those in flight, and nothing says for how long."""
    subject = Subject(engine="vllm", max_num_seqs=32)
    values = {"running": 32.0, "waiting": 8.0, "kv_used_fraction": 0.3}
    assert diagnose(moment(subject, **values)).verdict.sentence.startswith(
        "Requests queue at the sequence cap of 32 while KV has room: 8 of 40 requests in flight "
        "wait at that moment (20 % of them)"
    )
    under = diagnose(moment(subject, **{**values, "running": 20.0}))
    assert under.verdict.sentence == (
        "Undetermined between scheduling and compute: requests queue under no limit that was seen "
        "at its cap."
    )
    (line,) = [n for n in diagnose(moment(running=5, waiting=0)).not_observable if "load" in n.what]
    assert "nothing waits at the server (5 in flight at that moment), and" in line.reason
    few = diagnose(moment(Subject(engine="vllm", concurrency=40), running=5, waiting=0))
    assert few.verdict.sentence.startswith(
        "The client does not send what it says it offers: 5 of 40 clients had a request in flight "
        "at that moment, and nothing waited"
    )


def read_at(*times: int, waiting: float = 22.0) -> Capture:
    """75 run and some wait before a full pool, the last time as many as `waiting` says."""
    rows = [
        EngineSample(t * 10**9, "0", name, value)
        for t in times
        for name, value in (
            ("running", 75.0),
            ("waiting", waiting if t == times[-1] else 22.0),
            ("kv_used_fraction", 0.996),
        )
    ]
    return Capture(subject=Subject(engine="vllm"), engine_samples=tuple(rows))


@pytest.mark.parametrize(
    ("capture", "is_one"),
    [
        (read_at(0, 10), True),  # as a log's one line is read: over its period
        (read_at(0, 10, 20), False),
        (read_at(0, 10, waiting=23.0), False),
    ],
)
def test_one_line_of_a_log_is_one_moment_too(capture: Capture, is_one: bool) -> None:
    found = diagnose(capture)
    assert found.verdict.bottleneck == "capacity"
    assert (found.verdict.confidence <= 0.65) is is_one
    assert any("read once" in note for note in found.notes) is is_one


HELD = {
    "running": 64.0,
    "waiting": 30.0,
    "kv_used_fraction": 0.11,
    "ttft_s_count": 664.0,  # 600 of them ended: 64 are left, and 64 run
    "finished_total": 600.0,
}


def test_requests_that_all_decode_while_others_wait_show_the_cap() -> None:
    found = decoding_cap(moment(**HELD).engine_samples, "page")
    assert found is not None
    assert found.running == 64
    assert "664 first tokens, 600 requests ended" in found.sentence


@pytest.mark.parametrize(
    "other",
    [
        {"ttft_s_count": 663.0},  # one prompt is in work
        {"kv_used_fraction": 0.5},  # the head may need more than is left
        {"waiting": 0.0},
        {"waiting_deferred": 30.0},  # held back by something else
        {"running": 7.0, "ttft_s_count": 607.0},  # few are held by much else
    ],
)
def test_it_shows_nothing_else(other: dict[str, float]) -> None:
    assert decoding_cap(moment(**{**HELD, **other}).engine_samples, "page") is None


def test_it_is_blind_without_the_counters() -> None:
    for name in ("ttft_s_count", "finished_total", "kv_used_fraction"):
        values = {k: v for k, v in HELD.items() if k != name}
        assert decoding_cap(moment(**values).engine_samples, "page") is None


def test_a_longer_series_tells_by_itself() -> None:
    samples = [s._replace(t_ns=t) for t in range(5) for s in moment(**HELD).engine_samples]
    assert decoding_cap(samples, "page") is None


def ends_with(running: float, waiting: float, *, before: float = 0.0) -> Capture:
    """Four readings a second apart; the last one lasts for no time that was seen."""
    rows = [
        EngineSample(i * 10**9, "0", name, last if i == 3 else first)
        for i in range(4)
        for name, first, last in (("running", before, running), ("waiting", 0.0, waiting))
    ]
    return Capture(subject=Subject(engine="vllm"), engine_samples=tuple(rows))


def test_what_came_as_the_last_was_read_is_not_left_out() -> None:
    found = diagnose(ends_with(128, 172)).verdict
    assert (found.bottleneck, found.load, found.confidence <= 0.5) == ("none", "idle", True)
    assert found.sentence == (
        "Nothing limits this run: nothing was in flight until the last reading, when 128 ran and "
        "172 waited; what limits those was not seen."
    )


def test_an_idle_end_and_one_that_was_busy_before_are_told_as_ever() -> None:
    idle = diagnose(ends_with(0, 0)).verdict
    assert "nothing was in flight 100 % of the time and nothing waited." in idle.sentence
    assert idle.confidence > 0.5
    assert "last reading" not in diagnose(ends_with(128, 172, before=1.0)).verdict.sentence


def still(seconds: int, **last: float) -> Capture:
    """Readings each second that say the same; `last` is what the last one says otherwise."""
    same = {"running": 64.0, "waiting": 64.0, "kv_used_fraction": 0.11, "output_tokens_total": 9e5}
    rows = [
        EngineSample(t * 10**9, "0", name, last.get(name, value) if t == seconds else value)
        for t in range(seconds + 1)
        for name, value in {**same, "frontend_cpu_s_total": 0.1 * t}.items()
    ]
    return Capture(subject=Subject(engine="vllm", max_num_seqs=64), engine_samples=tuple(rows))


# 25 s without a token are a standstill. With one token more the engine works.
@pytest.mark.parametrize(
    ("capture", "is_one"),
    [
        (still(4), True),
        (still(24), True),
        (still(25), False),
        (still(4, output_tokens_total=900_001.0), False),
        (still(4, waiting=63.0), False),
    ],
)
def test_a_page_on_which_nothing_moves_is_one_moment(capture: Capture, is_one: bool) -> None:
    found = diagnose(capture)
    assert (found.verdict.confidence <= 0.65) is is_one
    assert any(n.startswith("No figure of the engine changed") for n in found.notes) is is_one
    assert ("wait at that moment" in found.verdict.sentence) is is_one


def test_an_idle_server_stands_still_all_the_same() -> None:
    rows = [s._replace(value=0.0) for s in still(4).engine_samples if s.name != "kv_used_fraction"]
    assert diagnose(Capture(engine_samples=tuple(rows))).verdict.confidence > 0.65
