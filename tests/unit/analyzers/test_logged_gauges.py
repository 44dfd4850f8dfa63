"""Gauges as logs give them: per cent of a pool, caps not stated, lines between two steps."""

from __future__ import annotations

import pytest
from capture_builders import MS, ON_CPU, gauges

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.load.admission import observe_admission
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.load.weights_read import decide_by_weights, weights_share
from stallscope.analyzers.prepared import prepare
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture
from stallscope.profiler.spec import Subject

CAPPED = Subject(max_num_seqs=100)
Series = tuple[float, ...] | float


def shares(subject: Subject = CAPPED, count: int = 3, **series: Series) -> dict[str, float]:
    rows = {n: v if isinstance(v, tuple) else (float(v),) * count for n, v in series.items()}
    capture = Capture(subject=subject, engine_samples=gauges(1.0, **rows))
    found = observe_admission(capture, Span(0, (count - 1) * MS), None)
    assert found is not None
    return found.shares


@pytest.mark.parametrize(
    ("series", "limit"),
    [
        ({"running": 50, "kv_used_fraction": 0.95}, "kv"),
        ({"running": 50, "kv_used_fraction": 0.949}, "unknown"),
        ({"running": 100, "kv_used_fraction": 0.5}, "seqs"),
        # Two hold 0.82, 0.41 each: a third does not fit into 0.18. Of 0.66 it does, into 0.34.
        ({"running": 2, "kv_used_fraction": 0.82}, "kv"),
        ({"running": 2, "kv_used_fraction": 0.66}, "unknown"),
        # Between two steps slots are free that the next one fills: 95 of 100 count as all.
        ({"running": 95, "kv_used_fraction": 0.5}, "seqs"),
        ({"running": 94, "kv_used_fraction": 0.5}, "unknown"),
    ],
)
def test_by_a_fraction_of_the_pool(series: dict[str, float], limit: str) -> None:
    assert shares(waiting=9, **series) == {limit: 1.0}


def test_bytes_go_before_a_fraction() -> None:
    known = {"kv_used_bytes": 960.0, "kv_total_bytes": 1000.0, "kv_used_fraction": 0.1}
    assert shares(waiting=9, running=50, **known) == {"kv": 1.0}


def test_slots_that_become_free_into_a_full_pool_are_not_taken() -> None:
    running, used = (100, 90, 90), (0.90, 0.99, 0.99)
    found = shares(waiting=(50, 60, 60), running=running, kv_used_fraction=used)
    assert found == {"kv": 1.0}  # at the cap at first, yet running falls and the queue grows
    roomy = shares(waiting=(50, 60, 60), running=running, kv_used_fraction=(0.5, 0.5, 0.5))
    assert roomy == {"seqs": 0.5, "unknown": 0.5}
    shrinks = shares(waiting=(50, 50, 50), running=running, kv_used_fraction=used)
    assert shrinks == {"seqs": 0.5, "kv": 0.5}


def test_no_cap_is_below_what_ran_at_another_time() -> None:
    """Prompts at 100 a step with 8 running, then 9: the cap, whatever it is, is 9 or more."""
    series = {"waiting": 5, "kv_used_fraction": 0.2, "input_tokens_total": (0, 100, 200, 300, 400)}
    found = shares(Subject(), 5, running=(5, 6, 7, 8, 9), **series)
    assert found == {"prefill": 1.0}
    found = shares(Subject(), 5, running=(6, 7, 7, 6, 7), **series)
    assert found == {"prefill": 0.5, "unknown": 0.5}


def test_prompts_that_came_in_steadily_until_the_pool_was_full() -> None:
    """Four intervals of 100 tokens with room, then four of none without."""
    series: dict[str, Series] = {
        "waiting": (9, 8, 7, 6, 5, 5, 5, 5, 5),
        "running": (1, 2, 3, 4, 5, 5, 5, 5, 5),
        "kv_used_fraction": (0.1, 0.2, 0.3, 0.4, 0.99, 0.99, 0.99, 0.99, 0.99),
        "input_tokens_total": (0, 100, 200, 300, 400, 400, 400, 400, 400),
    }
    assert shares(Subject(), 9, **series) == {"prefill": 0.5, "kv": 0.5}
    uneven = {**series, "input_tokens_total": (0, 10, 20, 30, 400, 400, 400, 400, 400)}
    assert shares(Subject(), 9, **uneven) == {"unknown": 0.5, "kv": 0.5}


# A second with 900 tokens of one request holds 900 steps; each reads the toy's 131,072 bytes of
# weights, of 294,912,000 that the memory streams: 900 × 131,072 ÷ 294,912,000 = 0.4.
DECODES = {"waiting": (0, 0), "running": (1, 1), "input_tokens_total": (70, 70)}


def decoding(made: float, **change: tuple[float, ...]) -> Capture:
    series = {**DECODES, "output_tokens_total": (0, made), **change}
    return Capture(subject=ON_CPU, engine_samples=gauges(1000.0, **series))


def share_of(capture: Capture) -> float | None:
    run = prepare(capture, Thresholds())
    assert run.cost is not None
    return weights_share(capture, run.cost, run.span)


def test_weights_are_read_once_a_step() -> None:
    assert share_of(decoding(900.0)) == pytest.approx(0.4)
    assert share_of(decoding(450.0)) == pytest.approx(0.2)
    two = decoding(1800.0, running=(2, 2))  # as many steps make twice the tokens
    assert share_of(two) == pytest.approx(0.4)


@pytest.mark.parametrize(
    "change",
    [
        {"input_tokens_total": (70, 80)},  # prompts take part of the time
        {"running": (1, 2)},
        {"running": (0, 0)},
        {"running": (65, 65)},  # so many rows that compute may bind
    ],
)
def test_nothing_is_said_of_other_stretches(change: dict[str, tuple[float, ...]]) -> None:
    assert share_of(decoding(900.0, **change)) is None


def test_no_output_tells_nothing() -> None:
    assert share_of(decoding(0.0)) is None


def test_bandwidth_from_gauges_alone() -> None:
    enough, too_few, too_many = (900 * share / 0.4 for share in (0.61, 0.59, 1.01))
    found = diagnose(decoding(enough)).verdict
    assert (found.bottleneck, found.confidence <= 0.85) == ("bandwidth", True)
    assert "reading the weights once a step takes 61 %" in found.sentence
    assert diagnose(decoding(too_few)).verdict.bottleneck == "undetermined"
    assert diagnose(decoding(too_many)).verdict.bottleneck == "undetermined"  # the model is wrong


def test_without_a_model_weights_say_nothing() -> None:
    assert decide_by_weights(decoding(900.0), None, Span(0, MS), Thresholds()) is None
