"""Measures: a closed list, and each value by hand on a run of two steps."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, ON_CPU, batch_one, event, gauges, request, samples, step

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.measures import MEASURES, measure
from stallscope.analyzers.rules import by_id
from stallscope.profiler.capture import Capture
from stallscope.profiler.evidence import Measure


def found(capture: Capture) -> dict[str, Measure]:
    return {m.name: m for m in diagnose(capture).measures}


TWO_STEPS = (
    step(
        0,
        0,
        1,
        phase="prefill",
        kv_used_bytes=200,
        kv_total_bytes=1000,
        host_ns=MS // 4,
        device_ns=3 * MS // 4,
    ),
    step(1, 1, 3, kv_used_bytes=800, kv_total_bytes=1000, host_ns=MS // 2, device_ns=5 * MS // 2),
)


def test_pool_use_peak_and_mean_over_time() -> None:
    rows = found(Capture(steps=TWO_STEPS))
    assert rows["kv_used_peak"].value == pytest.approx(0.8)
    assert rows["kv_used_mean"].value == pytest.approx(0.65)  # (0.2 · 1 + 0.8 · 3) / 4


def test_host_time_per_step() -> None:
    rows = found(Capture(steps=TWO_STEPS))
    assert rows["host_per_step"].value == pytest.approx(0.375e-3)  # (0.25 + 0.5) / 2
    assert rows["host_per_step"].unit == "s"


def test_preemptions_and_what_they_cost() -> None:
    """Two prompts of 16, four of whose tokens were cached; 44 prefilled: 16 of them again."""
    steps = (step(0, 0, 1, phase="prefill", prefill_tokens=44), step(1, 1, 1))
    rows = (
        request(0, 0, 0, 1, 2, preemptions=1, cached_tokens=4),
        request(1, 0, 0, 1, 2, preemptions=0),
    )
    values = found(Capture(steps=steps, requests=rows))
    assert values["preemptions"].value == 1
    assert values["recomputed_tokens"].value == 16  # 44 − (16 + 16 − 4)


def test_preemption_that_nobody_timed_leaves_a_lower_bound_of_the_wait() -> None:
    rows = tuple(request(i, 0, 0, 10, 1000, preemptions=5) for i in range(4))
    diagnosis = diagnose(Capture(steps=TWO_STEPS, requests=rows))
    wait = {m.name: m for m in diagnosis.measures}["queue_wait_share"]
    assert (wait.value, wait.provenance, wait.side) == (0.0, "bound", "lower")
    rule = by_id(diagnosis.rules, "scheduling")
    assert rule.status == "not observable"
    assert "queue wait share ≥ 0.000 does not settle 0.20" in rule.reason
    how = {n.what: n.how for n in diagnosis.not_observable}["the scheduling rule"]
    assert how == "record how long preempted requests wait (preempted_ns)"
    timed = tuple(r._replace(preempted_ns=0) for r in rows)
    known = found(Capture(steps=TWO_STEPS, requests=timed))["queue_wait_share"]
    assert (known.provenance, known.side) == ("measured", None)


def test_each_rank_of_one_engine_counts_once() -> None:
    both = (*TWO_STEPS, *(s._replace(rank=1) for s in TWO_STEPS))
    rows = (request(0, 0, 0, 1, 4, preemptions=1, preempted_ns=0, cached_tokens=0),)
    one = diagnose(Capture(steps=TWO_STEPS, requests=rows))
    two = diagnose(Capture(steps=both, requests=rows))
    assert (two.phases, two.measures) == (one.phases, one.measures)
    assert [(p.phase, p.count, p.time_s) for p in two.phases] == [
        ("prefill", 1, pytest.approx(0.001)),
        ("decode", 1, pytest.approx(0.003)),
        ("all", 2, pytest.approx(0.004)),
    ]


def test_engines_are_compared_by_their_requests() -> None:
    series = {"waiting": (6,) * 9, "running": (4,) * 9}
    full = gauges(**series)
    idle = tuple(s._replace(engine="second") for s in gauges(waiting=(0,) * 9, running=(2,) * 9))
    rows = found(Capture(engine_samples=full + idle))
    assert rows["in_flight_fullest"].value == pytest.approx(10)
    assert rows["in_flight_mean_engine"].value == pytest.approx(6)
    assert rows["limit_imbalance"].value == pytest.approx(1.0)
    assert "in_flight_fullest" not in found(Capture(engine_samples=full))


def test_preemptions_without_request_rows_are_counted_from_events() -> None:
    rows = found(Capture(steps=TWO_STEPS, events=(event("preempt", 1, 0), event("preempt", 2, 0))))
    assert rows["preemptions"].value == 2
    assert "recomputed_tokens" not in rows


def test_preemptions_that_nobody_counted_are_absent() -> None:
    rows = found(Capture(steps=TWO_STEPS, requests=(request(0, 0, 0, 1, 2),)))
    assert "preemptions" not in rows


def test_kv_bytes_by_formula_by_allocation_and_as_read() -> None:
    pool = event("kv_pool", bytes=51_200, tokens=100)
    rows = found(dataclasses.replace(batch_one(), events=(*batch_one().events, pool)))
    assert rows["kv_bytes_per_token"].value == 512  # 2 · 1 · 1 · 64 · 4
    assert rows["kv_bytes_per_token"].provenance == "derived"  # as in the KV table
    assert rows["kv_bytes_per_token_allocated"].value == 512
    assert rows["kv_read_bytes_per_decode_step"].value == 512 * 32
    assert rows["kv_read_bytes_per_decode_step"].provenance == "estimated"
    events = (event("kv_read", bytes=1000), event("kv_read", bytes=3000))
    read = found(Capture(subject=ON_CPU, steps=TWO_STEPS, events=events))
    assert read["kv_read_bytes_per_decode_step"].value == 2000


def test_work_by_hand() -> None:
    rows = found(batch_one())
    assert rows["weight_bytes_per_step"].value == 131_072
    assert rows["mbu_decode"].value == pytest.approx(0.5)
    # 2 · 32,768 FLOPs in linears, 4 · 64 · 32 in attention, in 1 ms of 1e15 FLOP/s.
    assert rows["mfu_decode"].value == pytest.approx(73_728 / 1e12)
    assert rows["intensity_decode"].value == pytest.approx(73_728 / 147_456)
    assert rows["ridge"].value == pytest.approx(1e15 / 294_912_000)
    # Gate, up and down: 3 · 4096 of 8 · 4096 + embedding 4096 + 3 norms of 64.
    assert rows["ffn_parameter_share"].value == pytest.approx(12_288 / 37_056)


def test_mbu_against_the_memory_is_shown_aside_where_the_cache_holds_the_run() -> None:
    assert "mbu_decode_stream" not in found(batch_one())
    fast = event(
        "probe", probe="stream", when="working-set", value=589_824_000.0, buffer_bytes=147_456
    )
    capture = batch_one()
    rows = found(dataclasses.replace(capture, events=(*capture.events, fast)))
    # 147,456 bytes in 1 ms: half of the memory's 294.9 MB/s, a quarter of the cache's 589.8 MB/s.
    assert rows["mbu_decode"].value == pytest.approx(0.25)
    assert rows["mbu_decode_stream"].value == pytest.approx(0.5)


def test_probes_say_when_they_ran() -> None:
    probes = [
        event("probe", probe="stream", when=when, value=v, buffer_bytes=1 << 20)
        for when, v in (("before", 10.0), ("working-set", 20.0))
    ]
    gemm = event("probe", probe="gemm", when="after", value=5.0, dtype="fp32", n=64)
    capture = Capture(steps=TWO_STEPS, events=(*probes, gemm))
    rows = [m for m in diagnose(capture).measures if m.name.startswith("probe")]
    assert [(m.value, m.source) for m in rows] == [
        (10.0, "probe before the run, 1 MiB"),
        (20.0, "probe at the working-set size, 1 MiB"),
        (5.0, "probe after the run, fp32 N=64"),
    ]


def test_sizes_say_whether_they_are_of_all_devices() -> None:
    four = dataclasses.replace(batch_one(), subject=dataclasses.replace(ON_CPU, num_devices=4))
    found_on = diagnose(four)
    (per_token,) = (m for m in found_on.measures if m.name == "kv_bytes_per_token")
    # One KV head, and four devices that each need it.
    assert (per_token.value, per_token.source[-20:]) == (4 * 512, ", over all 4 devices")
    assert found_on.kv_table[0].source.endswith("over all 4 devices")
    assert "devices" not in diagnose(batch_one()).kv_table[0].source


def test_no_measure_stands_for_what_is_not_known() -> None:
    assert found(Capture()) == {}
    assert set(found(Capture(steps=(step(0, 0, 1),)))) == {
        "allocation_failures",
        "decode_tokens_per_s",
        "decode_share_requests",
        "decode_share_engine",
    }


def test_every_measure_is_of_the_closed_list_with_its_unit() -> None:
    rows = (
        *samples("memory_used_bytes", 1),
        *samples("memory_total_bytes", 2),
        *samples("gpm_dram_util", 0.5),
        *samples("gpm_sm_util", 0.5),
        *samples("gpm_tensor_util", 0.1),
        *samples("nvml_gpu_util", 0.9),
    )
    gpu = dataclasses.replace(ON_CPU, device=dataclasses.replace(ON_CPU.device, is_cpu=False))  # type: ignore[type-var]
    captures = (
        batch_one(),
        Capture(
            subject=gpu,
            steps=TWO_STEPS,
            requests=(request(0, 0, 0, 1, 4, preemptions=1),),
            device_samples=rows,
        ),
    )
    for capture in captures:
        for m in diagnose(capture).measures:
            assert (m.name, m.unit) == (m.name, MEASURES[m.name][0])


def test_a_name_outside_the_list_is_a_bug() -> None:
    with pytest.raises(KeyError):
        measure("utilisation", 0.5, "measured", "a test")
