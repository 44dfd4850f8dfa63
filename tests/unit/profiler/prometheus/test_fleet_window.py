"""What is asked of Prometheus: for which time, how densely, in which pieces, for which series."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stallscope.errors import UsageError
from stallscope.profiler.metrics_page.by_engine import by_engine
from stallscope.profiler.metrics_page.scrape import Page, scrape_of
from stallscope.profiler.prometheus.api import MOST_POINTS, Series
from stallscope.profiler.prometheus.replicas import gathered, key_of, replica_names
from stallscope.profiler.prometheus.selector import engine_selectors, matchers, selector
from stallscope.profiler.prometheus.window import (
    MOST_IN_ANSWER,
    MOST_SAMPLES,
    USUAL_INTERVAL_S,
    Window,
    interval_of,
    parse_duration,
    window,
)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("1h", 3600), ("1h30m", 5400), ("2d", 172_800), ("1w", 604_800)],
)
def test_durations(text: str, seconds: int) -> None:
    assert parse_duration(text, "--since") == seconds


@pytest.mark.parametrize("text", ["", "1", "h", "1x", "-1h", "1.5h", "0s", "1 h", "9999d", "1h\n"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(UsageError, match="--since .*: give a duration up to a year"):
        parse_duration(text, "--since")


@pytest.mark.parametrize(
    ("select", "inner"),
    [
        ("{}", ""),
        (' { job="vllm" } ', 'job="vllm"'),
        ('{job="vllm",}', 'job="vllm"'),
        ('job=~"v.*"', 'job=~"v.*"'),
        ('{a="}",b!="x"}', 'a="}",b!="x"'),
    ],
)
def test_matchers(select: str, inner: str) -> None:
    assert matchers(select) == inner


@pytest.mark.parametrize(
    "select", ["", "vllm", "up{", 'rate(x{job="a"}[5m])', "{" + "a" * 5000 + "}"]
)
def test_what_is_no_selector(select: str) -> None:
    with pytest.raises(UsageError, match="--select"):
        matchers(select)


def test_a_selector_is_escaped_as_promql_wants_it() -> None:
    assert selector("", ["b", "a"]) == '{__name__=~"a|b"}'
    assert selector('job="x"', [r'\d"']) == r'{job="x",__name__=~"\\d\""}'


def test_the_engines_series_are_asked_for_without_buckets() -> None:
    found = list(engine_selectors(""))
    assert any("num_requests_running" in one for one in found)
    assert not any("bucket" in one for one in found)
    assert all(len(one) < 4096 for one in found)


def points(*times: float) -> list[tuple[float, str]]:
    return [(t, "1") for t in times]


@pytest.mark.parametrize(
    ("found", "seconds"),
    [
        ([], USUAL_INTERVAL_S),
        ([Series({}, points(5))], USUAL_INTERVAL_S),
        ([Series({}, points(0, 15, 30.1, 44.9))], 15),
        ([Series({}, points(0, 0.25, 0.5))], 1),  # not finer than a second
        ([Series({}, points(0, 10, 20)), Series({}, points(3, 13, 300))], 10),
    ],
)
def test_the_interval_of_scrapes(found: list[Series], seconds: float) -> None:
    assert interval_of(found) == seconds


def test_few_series_are_read_at_every_scrape() -> None:
    assert window(7200.0, 3600, series=100, interval_s=15) == Window(3600.0, 7200.0, 15)


def test_many_are_read_more_seldom() -> None:
    """5,000 series over a day: 2,000,000 samples are 400 of each, one every 216 s."""
    assert window(86_400.0, 86_400, series=5000, interval_s=15).step_s == 216


@settings(deadline=None, max_examples=60)
@given(
    since=st.integers(1, 366 * 86_400),
    series=st.integers(1, 20_000),
    interval=st.integers(1, 300),
)
def test_pieces_cover_the_window_within_every_limit(since: int, series: int, interval: int) -> None:
    whole = window(1.8e9, since, series=series, interval_s=interval)
    count = len(whole.times())
    assert (count - 1) * series <= MOST_SAMPLES
    pieces = list(whole.pieces(series))
    assert (pieces[0].start_s, sum(len(p.times()) for p in pieces)) == (whole.start_s, count)
    assert pieces[-1].end_s == whole.times()[-1]
    for piece in pieces:
        assert len(piece.times()) <= MOST_POINTS
        assert len(piece.times()) * series <= max(MOST_IN_ANSWER, series)
    for before, after in itertools.pairwise(pieces):
        assert after.start_s - before.end_s == pytest.approx(whole.step_s)


def test_replicas_are_named_by_what_tells_them_apart() -> None:
    found = [
        {"job": "a", "instance": "h:1"},
        {"job": "b", "instance": "h:1"},
        {"job": "a", "instance": "h:2", "pod": "p"},
        {"job": "a", "pod": "p-7"},
    ]
    assert [replica_names(found)[key_of(labels)] for labels in found] == [
        "a/h:1",
        "b/h:1",
        "h:2",
        "p-7",
    ]
    assert list(replica_names([{}]).values()) == ["all"]


def test_series_become_scrapes_of_their_replica() -> None:
    def series(name: str, instance: str, *values: str) -> Series:
        labels = {"__name__": name, "instance": instance, "engine": "0"}
        return Series(labels, [(100.0 + 15 * i, v) for i, v in enumerate(values)])

    running = "vllm:num_requests_running"
    first = [series(running, "a", "1", "NaN", "3"), series(running, "b", "7")]
    second = [series("vllm:num_requests_waiting", "a", "4"), series("up", "c", "1")]
    found = gathered([first, second])
    told = found[("", "a", "")].scrapes(100.0)
    assert [(s.t_ns, s.unix_ns) for s in told] == [(0, 100 * 10**9), (30 * 10**9, 130 * 10**9)]
    assert [list(s.values.values()) for s in told] == [
        [{"running": 1.0, "waiting": 4.0}],
        [{"running": 3.0}],
    ]
    assert found[("", "c", "")].scrapes(100.0)[0].values == {}


def test_engines_behind_one_page_are_taken_apart() -> None:
    page = "".join(
        f'vllm:num_requests_running{{engine="{engine}",model_name="m"}} {engine + 1}\n'
        f'vllm:cache_config_info{{engine="{engine}",block_size="{16 * (engine + 1)}"}} 1\n'
        for engine in range(2)
    )
    scrape = scrape_of(Page(5, None, page + 'vllm:generation_tokens_total{model_name="m"} 9\n'))
    found = by_engine([scrape, scrape])
    assert list(found) == ["0", "1"]
    for name, parts in found.items():
        assert [p.t_ns for p in parts] == [5, 5]
        values = [v for part in parts for v in part.values.values()]
        assert values == [{"running": float(name) + 1}] * 2
        facts = [f for part in parts for f in part.facts.values()]
        assert {"block_size": f"{16 * (int(name) + 1)}"} in facts
