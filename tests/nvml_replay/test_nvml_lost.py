"""A GPU that goes while it is sampled: what was seen stays, and the subject's loop goes on."""

from __future__ import annotations

import pytest
from replay import Replay, values

from stallscope.analyzers.diagnose import diagnose
from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture

# The subject: one step every 20 ms until 1.6 s.
LOOP = """
    while time.perf_counter_ns() < start + 1_600_000_000:
        with recorder.decode(batch=1, context_tokens=8):
            time.sleep(0.02)
"""


def seconds(capture: Capture, t_ns: int) -> float:
    return float(t_ns - capture.meta["start_ns"]) / 1e9


def gaps(capture: Capture) -> list[tuple[str, str]]:
    return [(e.data["what"], e.data["reason"]) for e in capture.events if e.kind == "gap"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [(15, "GPU is lost"), (16, "GPU requires restart"), (999, "Unknown Error")],
)
def test_a_lost_gpu_leaves_a_gap_and_the_loop_alone(replay: Replay, code: int, reason: str) -> None:
    capture = replay.record("h100", body=LOOP, more=f"1 gpu0 lost {code}\n")
    times_s = [seconds(capture, s.t_ns) for s in capture.device_samples if s.name == "power_mw"]
    assert times_s
    assert max(times_s) < 1.05
    # A reading that it overtakes midway may name single counters first.
    assert ("NVML cuda:0", f"NVML returned {reason}") in gaps(capture)
    assert {why for _, why in gaps(capture)} == {f"NVML returned {reason}"}
    # 1 s or so of the loop came after it
    assert max(seconds(capture, step.end_ns) for step in capture.steps) >= 1.6
    assert capture.cut is None
    assert not [e for e in capture.events if e.kind == "error"]
    assert f"Samples of NVML cuda:0 are missing: NVML returned {reason}." in diagnose(capture).notes


def test_a_counter_that_fails_for_a_while_is_one_gap_and_comes_back(replay: Replay) -> None:
    more = "1 gpu0 temperature error 10\n2 gpu0 temperature 60\n"
    capture = replay.record("h100", seconds=2.8, more=more)
    assert gaps(capture) == [
        ("temperature_c of cuda:0 NVIDIA H100 80GB HBM3", "NVML returned Timeout")
    ]
    assert set(values(capture, "temperature_c")) == {58, 60}
    seen_s = [seconds(capture, s.t_ns) for s in capture.device_samples if s.name == "temperature_c"]
    assert not [t_s for t_s in seen_s if 1.1 < t_s < 1.9]
    assert len(values(capture, "power_mw")) > len(values(capture, "temperature_c"))


def test_a_driver_that_never_returns_is_left_behind(replay: Replay) -> None:
    program = f"""
path = {str(replay.folder / "run.sqlite")!r}
recorder = stallscope.Recorder(path, device="cuda:0")
time.sleep(1.2)
began = time.perf_counter()
recorder.close()
print(round(time.perf_counter() - began))
os._exit(0)
"""
    done = replay.run(program, "a100", more="0.8 gpu0 hang 60\n")
    assert done.stderr == ""
    assert 5 <= int(done.stdout) <= 11  # 5 s for each of two threads
    capture = read_capture(replay.folder / "run.sqlite")
    assert ("NVML cuda:0", "it does not answer any more") in gaps(capture)
    assert values(capture, "power_mw")
