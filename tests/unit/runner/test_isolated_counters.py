"""A device whose load switches with the phase, seen through a counter that averages a second.

The sampler and the device are played; engine, recorder, capture file and diagnosis are the real
ones, on a fake clock.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from engine_bench import TOKEN_BYTES, Clock, sizes

from stallscope.analyzers.diagnose import diagnose
from stallscope.analyzers.result import Diagnosis
from stallscope.analyzers.rules import by_id
from stallscope.analyzers.schedule import Scheduler, SchedulerConfig, Scheduling
from stallscope.profiler.capture import DeviceSample
from stallscope.profiler.capture_file import read_capture
from stallscope.profiler.recorder import Recorder
from stallscope.profiler.spec import DeviceSpec, Subject
from stallscope.runner.batch import Chunk, StepResult
from stallscope.runner.engine import Engine, Generation, Hooks
from stallscope.runner.engine_log import EngineLog
from stallscope.runner.isolated_phases import IsolatedPhases
from stallscope.runner.workload import ClosedLoop

SECOND = 1_000_000_000
STEP_NS = 100_000_000
LOADS = {  # of the device while it does one or the other
    "prefill": {"gpm_sm_util": 0.95, "gpm_dram_util": 0.30, "power_mw": 390_000.0},
    "decode": {"gpm_sm_util": 0.25, "gpm_dram_util": 0.84, "power_mw": 240_000.0},
}
UNITS = {"power_mw": "mW"}
LIMITS = SchedulerConfig(max_num_seqs=2, max_num_batched_tokens=64, num_blocks=64)
GPU = Subject(device=DeviceSpec("a gpu", {"fp32": 1e15}, 1 << 30, 1e12))


@dataclass
class Device:
    """Executes steps of 100 ms and answers with its mean load over the last second."""

    clock: Clock
    kv_bytes_per_token: int = TOKEN_BYTES
    name: str = "played"
    past: list[tuple[int, int, Mapping[str, float]]] = field(default_factory=list)
    sampled: threading.Event = field(default_factory=threading.Event)

    def execute(self, chunks: Sequence[Chunk]) -> StepResult:
        is_prefill = any(chunk.start == 0 for chunk in chunks)
        start = self.clock.ns
        self.past.append((start, start + STEP_NS, LOADS["prefill" if is_prefill else "decode"]))
        self.clock.ns += STEP_NS
        self.sampled.clear()
        assert self.sampled.wait(10), "the sampler's thread has ended"
        return StepResult({chunk.request: 1 for chunk in chunks if chunk.samples}, STEP_NS)

    def free(self, request: int) -> None:
        pass

    def probe(self) -> tuple[()]:
        return ()

    def sample(self, t_ns: int) -> Iterator[DeviceSample]:
        for name in LOADS["prefill"]:
            value = sum(
                load[name] * max(0, min(end, t_ns) - max(start, t_ns - SECOND))
                for start, end, load in tuple(self.past)
            )
            unit = UNITS.get(name, "fraction")
            yield DeviceSample(t_ns, "gpu0", name, value / SECOND, unit)
        self.sampled.set()


def diagnosed(path: Path, clock: Clock, planner: Scheduling) -> Diagnosis:
    device = Device(clock)
    hooks = Hooks(clock=clock, sleep=clock.sleep)
    engine = Engine(planner, device, generation=Generation(50), hooks=hooks)
    with Recorder(path, subject=GPU, clock=clock, sample_hz=0) as recorder:
        recorder.sample(device, hz=500)
        log = EngineLog(recorder, LIMITS, token_bytes=TOKEN_BYTES)
        engine.run(ClosedLoop(sizes(*[(8, 4)] * 6), concurrency=2), log)
    return diagnose(read_capture(path))


def by_phase(found: Diagnosis) -> dict[str, float]:
    wanted = ("sm_throughput_", "dram_throughput_", "power_")
    return {m.name: m.value for m in found.measures if m.name.startswith(wanted)}


def test_isolated_stretches_give_each_phase_its_own_values(tmp_path: Path) -> None:
    clock = Clock()
    found = diagnosed(tmp_path / "apart.sqlite", clock, IsolatedPhases(LIMITS, clock=clock))
    assert by_phase(found) == pytest.approx(
        {
            "sm_throughput_prefill": 0.95,
            "sm_throughput_decode": 0.25,
            "dram_throughput_prefill": 0.30,
            "dram_throughput_decode": 0.84,
            "power_prefill": 390.0,
            "power_decode": 240.0,
        }
    )
    rule = by_id(found.rules, "bandwidth")
    assert rule.status == "met"
    assert "SM in decode ≤ 0.250" in rule.reason
    assert "DRAM in decode 0.840" in rule.reason


def test_the_same_load_served_does_not(tmp_path: Path) -> None:
    # A prefill of 0.1 s and three decodes of 0.1 s, over and over.
    found = diagnosed(tmp_path / "served.sqlite", Clock(), Scheduler(LIMITS))
    assert by_phase(found) == {}
    gaps = {n.what: (n.reason, n.how) for n in found.not_observable}
    for phase, length in (("prefill", "0.1 s"), ("decode", "0.3 s")):
        reason, how = gaps[f"device counters in {phase}"]
        assert reason.startswith(f"the longest stretch of only {phase} steps took {length}; ")
        assert how == f"run with --isolate-phases, or {phase} for longer at a time"
    assert by_id(found.rules, "bandwidth").status == "not met"
