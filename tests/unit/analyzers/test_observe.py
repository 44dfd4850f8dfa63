"""What the rules look at, gathered from captures."""

from __future__ import annotations

import dataclasses

import pytest
from capture_builders import MS, ON_CPU, ON_GPU, batch_one, decodes, event, samples, step

from stallscope.analyzers.load.demand import UNKNOWN_DEMAND
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.observe import (
    allocation_failures,
    busy,
    memory_fraction,
    rule_evidence,
)
from stallscope.analyzers.prepared import prepare
from stallscope.analyzers.rules import bandwidth_rule, evaluate
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture

T = Thresholds()


def statuses(capture: Capture) -> dict[str, str]:
    run = prepare(capture, T)
    found = rule_evidence(capture, run.costs, cost=run.cost, demand=UNKNOWN_DEMAND, span=run.span)
    return {r.id: r.status for r in evaluate(found, T)}


def test_gpu_memory_is_the_highest_share_of_any_device() -> None:
    rows = (
        *samples("memory_used_bytes", 10, 60, 20),
        *samples("memory_total_bytes", 100, 100, 100),
        *samples("memory_used_bytes", 30, device="gpu1"),
        *samples("memory_total_bytes", 40, device="gpu1"),
        *samples("memory_used_bytes", 99, device="host"),
    )
    found = memory_fraction(Capture(subject=ON_GPU, device_samples=rows))
    assert found is not None
    assert found.value == 0.75  # 30 of 40 on gpu1; gpu0 reached 60 of 100
    assert "gpu1" in found.source


def test_memory_used_without_its_total_is_not_known() -> None:
    rows = samples("memory_used_bytes", 10)
    assert memory_fraction(Capture(subject=ON_GPU, device_samples=rows)) is None


def test_cpu_memory_is_the_hosts() -> None:
    rows = (
        *samples("host_memory_total_bytes", 100, 100, device="host"),
        *samples("host_memory_available_bytes", 40, 25, device="host"),
        *samples("memory_used_bytes", 99),
        *samples("memory_total_bytes", 100),
    )
    found = memory_fraction(Capture(subject=ON_CPU, device_samples=rows))
    assert found is not None
    assert found.value == 0.75  # 1 − 25 / 100


def test_allocation_failures_are_known_from_steps_or_from_a_failure() -> None:
    def count(capture: Capture) -> float | None:
        found = allocation_failures(capture)
        return None if found is None else found.value

    assert count(Capture()) is None
    assert count(Capture(steps=decodes(1))) == 0
    assert count(Capture(events=(event("oom", stage="weights"),))) == 1
    assert count(Capture(events=(event("oom", stage="step"), event("oom", stage="step")))) == 2


@pytest.mark.parametrize(
    ("kind", "message", "is_refusal"),
    [
        ("OutOfMemoryError", "CUDA out of memory. Tried to allocate 2.00 GiB", True),
        ("MemoryError", "", True),
        ("RuntimeError", "[enforce fail] DefaultCPUAllocator: can't allocate memory", True),
        ("RuntimeError", "shape mismatch", False),
    ],
)
def test_an_error_in_somebodys_own_loop_counts_when_it_is_a_refusal(
    kind: str, message: str, is_refusal: bool
) -> None:
    capture = Capture(steps=decodes(1), events=(event("error", type=kind, message=message),))
    found = allocation_failures(capture)
    assert found is not None
    assert found.value == float(is_refusal)


def test_busy_from_forward_calls_is_their_union_over_the_span() -> None:
    # Forward calls [0.5, 1], [0.7, 1.2] (another rank) and [3, 4] ms: 0.7 + 1.0 of 10 ms.
    steps = (
        step(0, 0.0, 1.0, device_ns=MS // 2),
        step(1, 0.2, 1.0, device_ns=MS // 2, rank=1),
        step(2, 2.0, 2.0, device_ns=MS),
    )
    run = prepare(Capture(steps=steps), T)
    (found,) = busy(run.capture, run.costs, Span(0, 10 * MS))
    assert found.value == pytest.approx(0.17)
    assert found.side == "upper"


def test_busy_is_not_known_when_one_forward_call_is_not() -> None:
    steps = (step(0, 0, 1, device_ns=MS), step(1, 1, 1))
    run = prepare(Capture(steps=steps), T)
    assert busy(run.capture, run.costs, Span(0, 2 * MS)) == ()


def test_sampled_busy_goes_before_forward_calls_and_stays_an_upper_bound() -> None:
    capture = Capture(steps=decodes(2, device_ns=MS), device_samples=samples("nvml_gpu_util", 0.4))
    run = prepare(capture, T)
    (found,) = busy(capture, run.costs, Span(0, 2 * MS))
    assert (found.value, found.side, found.provenance) == (0.4, "upper", "bound")


def test_gpm_counters_meet_the_bandwidth_rule_by_bounds() -> None:
    rows = (*samples("gpm_sm_util", 0.25), *samples("gpm_dram_util", 0.84))
    capture = Capture(subject=ON_GPU, steps=decodes(1), device_samples=rows)
    assert statuses(capture)["bandwidth"] == "met"


def test_gpm_counters_that_leave_sm_open() -> None:
    rows = (
        *samples("gpm_sm_util", 0.97),
        *samples("gpm_tensor_util", 0.05),
        *samples("gpm_dram_util", 0.84),
    )
    capture = Capture(subject=ON_GPU, steps=decodes(1), device_samples=rows)
    assert statuses(capture)["bandwidth"] == "not observable"


def test_nvml_memory_utilisation_does_not_meet_the_bandwidth_rule() -> None:
    rows = (*samples("gpm_sm_util", 0.25), *samples("nvml_mem_util", 0.99))
    capture = Capture(device_samples=rows, steps=decodes(1))
    assert statuses(capture)["bandwidth"] == "not observable"


def test_a_cpu_run_is_not_judged_by_a_gpu_in_the_machine() -> None:
    rows = (*samples("ncu_sm_throughput", 0.1), *samples("gpm_dram_util", 0.9))
    capture = dataclasses.replace(batch_one(), device_samples=rows)
    assert statuses(capture)["bandwidth"] == "not met"  # MBU 0.5 · 1.25 = 0.625


def test_mbu_of_the_decode_steps_stands_in_for_dram() -> None:
    run = prepare(batch_one(ON_GPU), T)
    found = rule_evidence(
        run.capture, run.costs, cost=run.cost, demand=UNKNOWN_DEMAND, span=run.span
    )
    (mbu,) = found.dram
    # (131,072 + 32 · 512) bytes in 1 ms of 294,912,000 B/s
    assert mbu.value == pytest.approx(0.5)
    assert (mbu.provenance, mbu.side) == ("bound", "lower")
    assert bandwidth_rule(found, T).measures == (*found.sm, mbu)


def test_sampled_pipes_prove_high_utilisation() -> None:
    rows = samples("gpm_tensor_util", 0.75)
    run = prepare(Capture(subject=ON_GPU, device_samples=rows, steps=decodes(1)), T)
    found = rule_evidence(
        run.capture, run.costs, cost=run.cost, demand=UNKNOWN_DEMAND, span=run.span
    )
    assert (found.utilisation[0].value, found.utilisation[0].side) == (0.75, "lower")
    assert statuses(run.capture)["scheduling"] == "not met"


def test_the_pool_is_said_to_be_preallocated() -> None:
    steps = decodes(1, kv_used_bytes=5, kv_total_bytes=10)
    run = prepare(Capture(steps=steps), T)
    found = rule_evidence(run.capture, run.costs, cost=None, demand=UNKNOWN_DEMAND, span=run.span)
    assert found.memory_note == "the KV pool is pre-allocated by the engine"


def test_more_bytes_than_the_memory_can_move_are_a_wrong_count() -> None:
    """147,456 bytes a step in 0.42 ms of 294.9 MB/s, which are 123,863 bytes: an MBU of 1.190."""
    capture = Capture(
        subject=ON_GPU,
        steps=decodes(30, 0.42, device_ns=420_000),
        device_samples=samples("ncu_sm_throughput", 0.2),
    )
    run = prepare(capture, T)
    found = rule_evidence(capture, run.costs, cost=run.cost, demand=UNKNOWN_DEMAND, span=run.span)
    rule = bandwidth_rule(found, T)
    assert rule.status == "not observable"
    assert rule.reason == (
        "mbu ≥ 1.190 is more than the device can do: the count of bytes is wrong (check dtype, "
        "model and device)"
    )


@pytest.mark.parametrize(
    ("meta", "known"), [({}, True), ({"trace": {}}, False), ({"trace": {}, "host": {}}, True)]
)
def test_a_trace_alone_shows_no_allocation(meta: dict[str, object], known: bool) -> None:
    """A recorder that was traced besides still tells of its own."""
    capture = Capture(steps=(step(0, 0, 1),), meta=meta)
    assert (allocation_failures(capture) is not None) == known
