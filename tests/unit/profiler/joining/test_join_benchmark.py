"""A client's results beside what the server and its GPU said at the same time."""

from __future__ import annotations

from pathlib import Path

import pytest
from joined import offsets_s, read_together, sentences
from scripted_load import LOAD, Load, bench_json, gpu_csv, metrics_pages, server_log

from stallscope.analyzers.diagnose import diagnose
from stallscope.errors import InputError
from stallscope.profiler.capture import Capture

HOUR = 3600.0
BEGIN_S, END_S, FLIGHT = LOAD.bursts[2]  # 331.9 s to 420.4 s, 24 in flight


def beside(folder: Path, bench: str, **more: str) -> Capture:
    files = {"server.log": server_log(LOAD), "bench.json": bench} | more
    return read_together(folder, files)


def engine_span(capture: Capture) -> tuple[float, float]:
    times = [s.t_ns / 1e9 for s in capture.engine_samples]
    return min(times), max(times)


@pytest.mark.parametrize("ahead_s", [0.0, 9 * HOUR])
def test_results_are_placed_by_their_date_and_the_rest_cut_to_them(
    tmp_path: Path, ahead_s: float
) -> None:
    capture = beside(tmp_path, bench_json(LOAD, ahead_s=ahead_s))
    (offset,) = offsets_s(capture)[1:]
    # The end lies between two of the log's lines, 420 s and 430 s, and the clock says 421.8 s less
    # the duration, cut to whole seconds: 332.5 s. It began at 331.9 s.
    assert offset == pytest.approx(BEGIN_S, abs=5)
    assert engine_span(capture) == pytest.approx((offset, offset + END_S - BEGIN_S), abs=10)
    said = sentences(capture)
    zone = " (bench.json's shows 9 h ahead of server.log's, as another time zone does)"
    assert said[0].startswith(
        f"bench.json is joined with server.log by their wall clocks{zone if ahead_s else ''}: "
    )
    assert any(
        s.startswith("Judged is the time of bench.json: what server.log tells") for s in said
    )


def test_requests_one_by_one_are_placed_by_the_number_in_flight(tmp_path: Path) -> None:
    capture = beside(tmp_path, bench_json(LOAD, is_detailed=True))
    assert "rises and falls of requests in flight agree" in sentences(capture)[0]
    assert len(capture.requests) == 72
    assert min(r.arrival_ns for r in capture.requests) / 1e9 == pytest.approx(BEGIN_S, abs=5)


def test_results_without_a_date_are_placed_by_events_alone(tmp_path: Path) -> None:
    pages = {"metrics.prom": metrics_pages(LOAD)}
    bench = bench_json(LOAD, is_detailed=True, is_dated=False)
    capture = read_together(tmp_path, {**pages, "bench.json": bench})
    (offset,) = offsets_s(capture)[1:]
    # Pages come each second, the first one 0.3 s after noon.
    assert offset == pytest.approx(BEGIN_S - 0.3, abs=1)
    told = "bench.json is joined with metrics.prom by events: 6 of 6 rises and falls of requests in"
    assert sentences(capture)[0].startswith(told)


def test_results_without_a_date_that_fit_nowhere_are_refused(tmp_path: Path) -> None:
    other = Load(((0.0, 30.0, 24),), 30.0)
    bench = bench_json(other, burst=0, is_detailed=True, is_dated=False)
    with pytest.raises(InputError) as caught:
        beside(tmp_path, bench)
    assert str(caught.value).startswith(
        "server.log and bench.json share no begin or end of work, and one of them tells no wall "
        "time: server.log is from 06-17 12:00:00"
    )
    assert "bench.json lasts 30.0 s and tells no date" in str(caught.value)
    # Said by hand: it began 331.9 s after the log did.
    stated = {"server.log": server_log(LOAD), "bench.json": bench}
    capture = read_together(tmp_path, stated, {"bench.json": 331.9})
    assert offsets_s(capture)[1] == pytest.approx(331.9)


@pytest.mark.parametrize(("clients", "is_client"), [(49, True), (47, False), (24, False)])
def test_a_client_that_offers_less_than_half_of_what_it_says(
    tmp_path: Path, clients: int, is_client: bool
) -> None:
    # 24 in flight: half of 49 is more, half of 47 less. So many requests (96 waves of 49) that the
    # last, short wave of 47 changes nothing.
    bench = bench_json(LOAD, clients=clients).replace('"completed": 72', '"completed": 4704')
    files = {"metrics.prom": metrics_pages(LOAD), "bench.json": bench}
    verdict = diagnose(read_together(tmp_path, files)).verdict
    assert (verdict.bottleneck == "client") is is_client
    if is_client:
        assert "of 49 clients had a request in flight" in verdict.sentence


def test_without_the_results_nobody_knows_what_was_offered(tmp_path: Path) -> None:
    capture = read_together(
        tmp_path, {"metrics.prom": metrics_pages(LOAD), "gpu.csv": gpu_csv(LOAD)}
    )
    assert capture.subject.concurrency is None
    assert diagnose(capture).verdict.bottleneck != "client"


def test_what_the_server_tells_is_no_longer_missing(tmp_path: Path) -> None:
    alone = read_together(tmp_path, {"bench.json": bench_json(LOAD)})
    both = beside(tmp_path, bench_json(LOAD))

    def missing(capture: Capture) -> list[str]:
        return [e.data["what"] for e in capture.events if e.kind == "not_observable"]

    assert missing(alone) == ["what the engine did (requests running and waiting, KV use)"]
    assert missing(both) == []


def test_results_and_a_gpu_alone(tmp_path: Path) -> None:
    files = {"bench.json": bench_json(LOAD, ahead_s=HOUR), "gpu.csv": gpu_csv(LOAD)}
    capture = read_together(tmp_path, files)
    assert [s.kind for s in capture.sources] == ["results of bench serve", "nvidia-smi"]
    assert offsets_s(capture)[1] == pytest.approx(-BEGIN_S, abs=5)
    diagnosis = diagnose(capture)
    # 24 requests in flight all the time, as the client counts, and a GPU that is busy meanwhile.
    measures = {m.name: m.value for m in diagnosis.measures}
    assert measures["in_flight"] == pytest.approx(24)
    assert measures["gpu_busy"] == pytest.approx(0.95, abs=0.06)
    assert diagnosis.verdict.load != "idle"


def test_of_several_files_of_loads_the_judged_one_is_joined(tmp_path: Path) -> None:
    capture = beside(tmp_path, bench_json(LOAD), **{"other.json": bench_json(LOAD, burst=1)})
    # 60 x 120 tokens in 69.5 s are more a second than 60 x 72 in 88.5 s: the second file.
    said = sentences(capture)
    assert "Of 2 loads the one with most tokens per second is joined." in said
    assert any(s.startswith("Judged is the time of other.json: what server.log") for s in said)
    assert offsets_s(capture)[1] == pytest.approx(LOAD.bursts[1][0], abs=5)
    assert len(capture.sources) == 3


def test_of_several_loads_in_one_file_the_judged_one_is_joined(tmp_path: Path) -> None:
    rows = f"{bench_json(LOAD)}\n{bench_json(LOAD, burst=1)}\n"
    capture = beside(tmp_path, rows)
    # 60 x 120 tokens in 69.5 s are more a second than 60 x 72 in 88.5 s: the second load.
    assert "Of 2 loads the one with most tokens per second is joined." in sentences(capture)
    assert offsets_s(capture)[1] == pytest.approx(LOAD.bursts[1][0], abs=5)
    assert len(capture.meta["benchmark"]["trials"]) == 1


def test_of_three_loads_the_results_alone_tell_the_knee(tmp_path: Path) -> None:
    rows = "\n".join(bench_json(LOAD, burst=burst) for burst in (0, 1, 0))
    assert (
        "Of 3 loads the one with most tokens per second is joined; where more load stops paying, "
        "the results tell alone, without the other files."
    ) in sentences(beside(tmp_path, rows))


def test_another_model_is_said(tmp_path: Path) -> None:
    bench = bench_json(LOAD).replace("meta/Llama-3-8B", "Qwen/Qwen3-4B")
    files = {"metrics.prom": metrics_pages(LOAD), "bench.json": bench}
    told = "metrics.prom is of model meta/Llama-3-8B, bench.json of Qwen/Qwen3-4B."
    assert any(s.startswith(told) for s in sentences(read_together(tmp_path, files)))
