"""What NVML says, in our units and at its times; what it does not say, with its reason."""

from __future__ import annotations

from pathlib import Path

import pytest
from replay import Replay, missing, setters, values

from stallscope.profiler.capture import Capture, DeviceSample
from stallscope.profiler.nvml import pcie
from stallscope.profiler.nvml.sampler import UNITS

A100 = "cuda:0 NVIDIA A100-SXM4-40GB"
PERIOD_S = 0.1

# What a100.txt holds before 1 s, from 1 s to 2 s, and after, in our units.
A100_VALUES = {
    "memory_used_bytes": (10 * 2**30, 30 * 2**30, 10 * 2**30),
    "memory_free_bytes": (
        31_568_009_626,
        10_093_173_146,
        31_568_009_626,
    ),  # total − used − reserved
    "memory_reserved_bytes": (644_245_094,) * 3,
    "memory_total_bytes": (40 * 2**30,) * 3,
    "process_memory_bytes": (9 * 2**30,) * 3,
    "nvml_gpu_util": (0.20, 0.95, 0.20),
    "nvml_memory_util": (0.10, 0.60, 0.10),
    "power_mw": (61_250, 398_500, 61_250),
    "power_limit_mw": (400_000,) * 3,
    "energy_mj": (123_456_789, 123_500_000, 124_000_000),
    "temperature_c": (41, 67, 67),
    "sm_clock_hz": (1.410e9, 1.095e9, 1.410e9),
    "sm_clock_max_hz": (1.410e9,) * 3,
    "memory_clock_hz": (1.215e9,) * 3,
    "memory_clock_max_hz": (1.215e9,) * 3,
    "clock_event_reasons": (0x1, 0x24, 0x1),
}


def near(sample: DeviceSample, start_ns: int, values: tuple[float, ...]) -> set[float]:
    """Return what was scripted within a period of a sample's time; steps are at 1 s and 2 s."""
    t_s = (sample.t_ns - start_ns) / 1e9
    ends = (1.0, 2.0, float("inf"))
    begins = (0.0, *ends[:-1])
    return {
        value
        for value, begin, end in zip(values, begins, ends, strict=True)
        if begin - PERIOD_S <= t_s <= end + PERIOD_S
    }


def gpu_samples(capture: Capture) -> list[DeviceSample]:
    return [s for s in capture.device_samples if s.device != "host"]


@pytest.fixture(scope="module")
def a100(nvml_library: Path, tmp_path_factory: pytest.TempPathFactory) -> Capture:
    """2.6 s of a100.txt."""
    return Replay(nvml_library, tmp_path_factory.mktemp("a100")).record("a100", seconds=2.6)


def test_an_a100s_counters_are_sampled_in_our_units_at_their_times(a100: Capture) -> None:
    rows = gpu_samples(a100)
    assert {row.device for row in rows} == {A100}
    assert {row.name for row in rows} == {*A100_VALUES, *pcie.UNITS}
    for row in rows:
        if row.name in A100_VALUES:
            assert row.unit == UNITS[row.name]
            assert row.value in near(row, a100.meta["start_ns"], A100_VALUES[row.name]), row
    # 10 Hz over the 2.3 s or more that are left once everything is loaded
    for name, scripted in A100_VALUES.items():
        seen = values(a100, name)
        assert 12 <= len(seen) <= 27, name
        assert set(seen) == set(scripted)
    assert a100.meta["devices"] == {
        A100: {
            "name": "NVIDIA A100-SXM4-40GB",
            "uuid": "GPU-5e2c1f7a-0c1d-4e2f-8a3b-111111111111",
            "pci_bus_id": "00000000:3B:00.0",
        }
    }


def test_pcie_is_read_once_a_second_where_only_the_slow_call_answers(a100: Capture) -> None:
    assert set(values(a100, "pcie_tx_bytes_per_s")) == {250e6}  # 250,000 KB/s
    assert set(values(a100, "pcie_rx_bytes_per_s")) == {1e9}
    assert 1 <= len(values(a100, "pcie_tx_bytes_per_s")) <= 2


def test_slowed_clocks_are_an_event_when_they_begin_and_end(a100: Capture) -> None:
    began, ended = (e for e in a100.events if e.kind == "throttle")
    # 0x24 is 0x4, the power cap, and 0x20, heat; 0x1, an idle GPU, is no slowdown
    reasons = ["software power cap", "software thermal slowdown"]
    assert began.data == {"device": A100, "reasons": reasons}
    assert ended.data == {"device": A100, "reasons": []}
    times_s = [(e.t_ns - a100.meta["start_ns"]) / 1e9 for e in (began, ended)]
    assert times_s == [pytest.approx(1.0, abs=2 * PERIOD_S), pytest.approx(2.0, abs=2 * PERIOD_S)]


def test_a_gpu_before_hopper_has_no_gpm_and_says_so(a100: Capture) -> None:
    absent = missing(a100)
    assert {name for name in absent if not name.startswith("gpm_")} == set()
    assert len(absent) == 9
    reason, how = absent["gpm_dram_util"]
    assert reason == "NVML says this GPU has no GPM, which came with Hopper"
    assert "ncu" in how


def test_an_h100s_gpm_is_sampled_as_fractions(replay: Replay) -> None:
    capture = replay.record("h100")
    scripted = {
        "gpm_graphics_util": 0.99,
        "gpm_sm_util": 0.97,
        "gpm_sm_occupancy": 0.40,
        "gpm_integer_util": 0.08,
        "gpm_tensor_util": 0.05,
        "gpm_dram_util": 0.84,
        "gpm_fp64_util": 0.0,
        "gpm_fp32_util": 0.04,
        "gpm_fp16_util": 0.12,
    }
    for name, value in scripted.items():
        seen = values(capture, name)
        assert seen
        assert seen == pytest.approx([value] * len(seen))
    assert {s.unit for s in capture.device_samples if s.name in scripted} == {"fraction"}
    assert [e for e in capture.events if e.kind == "gap"] == []


def test_gpm_is_the_mean_between_two_readings(replay: Replay) -> None:
    more = "1 gpu0 gpm.10 20\n"
    capture = replay.record("h100", seconds=1.9, more=more)
    rows = [s for s in capture.device_samples if s.name == "gpm_dram_util"]
    for row in rows:
        t_s = (row.t_ns - capture.meta["start_ns"]) / 1e9
        if t_s < 1.0 - PERIOD_S:
            assert row.value == pytest.approx(0.84)
        if t_s > 1.0 + 3 * PERIOD_S:  # a reading needs more than 100 ms: every second tick at most
            assert row.value == pytest.approx(0.20)
    assert {round(row.value, 2) for row in rows} >= {0.84, 0.20}


def test_one_gpm_metric_may_be_missing_alone(replay: Replay) -> None:
    capture = replay.record("h100_without_integer")
    assert list(missing(capture)) == ["gpm_integer_util"]
    assert missing(capture)["gpm_integer_util"][0] == "NVML returned Not Supported"
    assert values(capture, "gpm_dram_util")


def test_pcie_counters_become_rates(replay: Replay) -> None:
    capture = replay.record("h100", seconds=1.8)
    assert values(capture, "pcie_tx_bytes_per_s") == [pytest.approx(2e9, rel=0.05)]
    assert values(capture, "pcie_rx_bytes_per_s") == [pytest.approx(5e8, rel=0.05)]


def test_counters_of_32_bits_are_not_trusted(replay: Replay) -> None:
    # 2 GB/s wrap 2³² bytes every 2.1 s; the slow call is used instead
    more = "0 gpu0 pcie.type 1\n0 gpu0 pcie.tx.kb 2000000\n0 gpu0 pcie.rx.kb 500000\n"
    capture = replay.record("h100", seconds=1.8, more=more)
    assert values(capture, "pcie_tx_bytes_per_s") == [2e9]


def test_one_field_that_is_not_supported_is_missing_alone(replay: Replay) -> None:
    capture = replay.record("a100", more="0 gpu0 power error 3\n0 gpu0 energy error 4\n")
    absent = missing(capture)
    assert {name for name in absent if not name.startswith("gpm_")} == {"power_mw", "energy_mj"}
    assert absent["power_mw"][0] == "NVML returned Not Supported"
    assert absent["energy_mj"][0] == "NVML returned Insufficient Permissions"
    assert values(capture, "power_mw") == []
    assert set(values(capture, "power_limit_mw")) == {400_000}


def test_an_old_drivers_names_will_do(replay: Replay) -> None:
    more = (
        "0 gpu0 clock_events error 13\n0 gpu0 clock_events.old_name 0x8\n"
        "0 gpu0 memory.reserved error 13\n"
    )
    capture = replay.record("a100", more=more)
    assert set(values(capture, "clock_event_reasons")) == {8}
    assert min(values(capture, "memory_used_bytes")) == 10 * 2**30
    reason, how = missing(capture)["memory_reserved_bytes"]
    assert reason.startswith("NVML returned Function Not Found")
    assert how == "update the NVIDIA driver"


def test_another_process_is_not_ours(replay: Replay) -> None:
    capture = replay.record("a100", more="0 gpu0 process 4194300 777\n")
    assert values(capture, "process_memory_bytes") == []
    assert "--pid=host" in missing(capture)["process_memory_bytes"][1]


HELD = """
import ctypes, threading
held = lambda: ctypes.CDLL("libnvidia-ml.so.1").replay_held()
for hz in (0, 50, 50):
    with stallscope.Recorder(path, device="cuda:0", sample_hz=hz, force=True):
        time.sleep(0.2)
        during = held()
    print(hz, during > 0, held(), threading.active_count())
"""


def test_nothing_is_held_once_a_recording_is_closed(replay: Replay) -> None:
    done = replay.run(f"path = {str(replay.folder / 'run.sqlite')!r}\n{HELD}", "h100")
    assert (done.stdout, done.stderr) == ("0 False 0 1\n50 True 0 1\n50 True 0 1\n", "")


def test_the_replay_aborts_on_a_setter(replay: Replay) -> None:
    assert {"nvmlDeviceSetPersistenceMode", "nvmlGpmSetStreamingEnabled"} < set(setters())
    program = (
        "import pynvml; pynvml.nvmlInit(); "
        "pynvml.nvmlDeviceSetPowerManagementLimit(pynvml.nvmlDeviceGetHandleByIndex(0), 1)"
    )
    done = replay.run(program, "a100")
    assert done.returncode == -6  # SIGABRT
    assert "nvmlDeviceSetPowerManagementLimit" in done.stderr
