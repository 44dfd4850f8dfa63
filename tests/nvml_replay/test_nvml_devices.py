"""The device that is sampled is the one that CUDA calls by the name given."""

from __future__ import annotations

import pytest
from replay import Replay, missing, values

FIRST, SECOND = 11_000_000_000, 22_000_000_000  # bytes used on the GPUs of two_gpus.txt


@pytest.mark.parametrize(
    ("visible", "device", "used"),
    [
        (None, "cuda:0", FIRST),
        (None, "cuda:1", SECOND),
        ("GPU-bbbb2222-0000-4000-8000-000000000000,GPU-aaaa1111", "cuda:0", SECOND),
        ("GPU-bbbb2222,GPU-aaaa1111", "cuda:1", FIRST),
        ("1,0", "cuda", SECOND),
        ("1", "cuda:0", SECOND),
    ],
)
def test_visible_devices_are_followed(
    replay: Replay, visible: str | None, device: str, used: int
) -> None:
    env = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    capture = replay.record("two_gpus", device=device, env=env)
    assert set(values(capture, "memory_used_bytes")) == {used}
    label = f"{'cuda:0' if device == 'cuda' else device} NVIDIA A100-SXM4-80GB"
    assert {s.device for s in capture.device_samples} == {"host", label}
    letter = "a" if used == FIRST else "b"
    assert capture.meta["devices"][label]["uuid"].startswith(f"GPU-{letter * 4}")
    # the table's figures, and the memory that NVML says
    assert capture.subject.device is not None
    assert capture.subject.device.name == "a100-sxm4-80gb"
    assert capture.subject.device.memory_bytes == 85_899_345_920


@pytest.mark.parametrize(
    ("visible", "device", "reason"),
    [
        ("", "cuda:0", "there is no cuda:0: CUDA_VISIBLE_DEVICES='' leaves 0"),
        ("1", "cuda:1", "there is no cuda:1: CUDA_VISIBLE_DEVICES='1' leaves 1"),
        (None, "cuda:2", "there is no cuda:2: NVML lists 2 for CUDA"),
    ],
)
def test_a_device_that_is_not_visible_is_not_sampled(
    replay: Replay, visible: str | None, device: str, reason: str
) -> None:
    env = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    capture = replay.record("two_gpus", device=device, env=env)
    assert {s.device for s in capture.device_samples} == {"host"}
    assert missing(capture)["memory_used_bytes"][0] == reason


def test_a_gpu_that_may_not_be_opened_is_none_of_cudas(replay: Replay) -> None:
    capture = replay.record("two_gpus", more="0 gpu0 handle error 4\n")
    assert set(values(capture, "memory_used_bytes")) == {SECOND}


def test_a_cpus_recording_looks_at_no_gpu(replay: Replay) -> None:
    capture = replay.record("two_gpus", device="cpu")
    assert {s.device for s in capture.device_samples} == {"host"}
    assert "devices" not in capture.meta
    assert capture.subject.device is None
    assert [what for what in missing(capture) if "memory" in what] == []


MIG = "NVIDIA H100 80GB HBM3 MIG 3g.40gb"


def test_a_mig_instance_has_its_own_memory_and_units_and_its_gpus_clocks(replay: Replay) -> None:
    env = {"CUDA_VISIBLE_DEVICES": "MIG-d2d2d2d2-0000-5000-8000-000000000000"}
    capture = replay.record("mig", env=env)
    seen = {(s.device, s.name): s.value for s in capture.device_samples if s.device != "host"}
    own, whole = f"cuda:0 {MIG}", "NVIDIA H100 80GB HBM3 (whole GPU)"
    assert seen[own, "memory_used_bytes"] == 5_000_000_000
    assert seen[own, "memory_total_bytes"] == 42_949_672_960
    assert seen[own, "gpm_sm_util"] == pytest.approx(0.33)
    assert seen[own, "gpm_dram_util"] == pytest.approx(0.44)
    assert seen[whole, "sm_clock_hz"] == 1.5e9
    assert seen[whole, "power_mw"] == 300_000
    assert (whole, "memory_used_bytes") not in seen
    assert missing(capture)["nvml_gpu_util"][0] == "NVML returned Not Supported"
    assert capture.subject.device is None  # a slice of an H100 has not its peaks


@pytest.mark.parametrize(
    ("driver", "device", "uuid"),
    [
        # one instance only, the first
        ("535.104.05", "cuda:0", "MIG-d0d0d0d0"),
        ("535.104.05", "cuda:1", None),
        # from 570 on the first compute instance of each GPU instance
        ("570.86.10", "cuda:0", "MIG-d0d0d0d0"),
        ("570.86.10", "cuda:1", "MIG-d2d2d2d2"),
        ("570.86.10", "cuda:2", None),
    ],
)
def test_an_index_of_a_partitioned_gpu_means_its_instances(
    replay: Replay, driver: str, device: str, uuid: str | None
) -> None:
    env = {"CUDA_VISIBLE_DEVICES": "0"}
    capture = replay.record("mig", device=device, env=env, more=f"0 system driver {driver}\n")
    found = [facts["uuid"][:12] for facts in capture.meta.get("devices", {}).values()]
    assert found == ([] if uuid is None else [uuid])
