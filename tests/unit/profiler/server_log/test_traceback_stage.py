"""Failures pasted with their traceback alone: the frames tell the stage."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import periodic, read

P = "ERROR 07-01 12:00:00 [core.py:586] "
FAILED = "EngineCore failed to start.\n"
BEGIN = "Traceback (most recent call last):\n"
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has a total "
    "capacity of 23.64 GiB of which 512.00 MiB is free.\n"
)
SERVED = periodic("07-01 11:00:00", 48, 112, 99.5) + periodic("07-01 11:00:10", 47, 113, 99.0)
LOADED = "INFO 07-01 11:59:50 [gpu_model_runner.py:1801] Model loading took 21.5 GiB and 3.1 s\n"
SIZED = "INFO 07-01 11:59:55 [gpu_worker.py:1] Available KV cache memory: 4.00 GiB\n"


def frame(name: str) -> str:
    return f'  File "/usr/lib/python3/vllm/v1/worker/x.py", line 1500, in {name}\n    x = y(z)\n'


def stage(folder: Path, text: str) -> object:
    (oom,) = (e for e in read(folder, text).events if e.kind == "oom")
    assert oom.data["total_bytes"] == round(23.64 * 2**30)
    return oom.data.get("stage")


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        (("load_model", "initialize_model"), "weights"),
        (("determine_available_memory", "profile_run", "_dummy_run"), "profile"),
        (("initialize_kv_cache", "_zeros"), "kv"),
        (("compile_or_warm_up_model", "capture_model", "_dummy_run"), "graphs"),
        (("compile_or_warm_up_model", "_dummy_run"), "warmup"),
        # Version 0 profiles by executing the model once.
        (("profile_run", "execute_model"), "profile"),
        (("run_busy_loop", "execute_model", "forward"), "serving"),
        (("main", "forward"), None),
    ],
)
def test_the_innermost_frame_that_tells_names_the_stage(
    frames: tuple[str, ...], expected: str | None, tmp_path: Path
) -> None:
    assert stage(tmp_path, BEGIN + "".join(map(frame, frames)) + OOM) == expected


@pytest.mark.parametrize("prefix", ["", P])
@pytest.mark.parametrize("before", ["", SERVED, LOADED, SIZED])
def test_a_pasted_start_with_and_without_prefixes(prefix: str, before: str, tmp_path: Path) -> None:
    pasted = (FAILED + BEGIN + frame("profile_run") + OOM).splitlines(keepends=True)
    lines = [P + pasted[0], *(prefix + line for line in pasted[1:])]
    assert stage(tmp_path, before + "".join(lines)) == "profile"


def test_a_start_without_frames_is_one_at_an_unknown_stage(tmp_path: Path) -> None:
    assert stage(tmp_path, P + FAILED + P + OOM) == "starting"
    assert stage(tmp_path, SERVED + P + FAILED + P + OOM) == "starting"
    assert stage(tmp_path, LOADED + P + FAILED + P + OOM) == "profile"


def test_frames_of_an_earlier_traceback_tell_nothing_of_a_later_one(tmp_path: Path) -> None:
    first = BEGIN + frame("load_model") + "ValueError: no\n"
    assert stage(tmp_path, SERVED + first + BEGIN + frame("forward") + OOM) == "serving"


def test_serving_frames_do_not_outweigh_what_the_log_says(tmp_path: Path) -> None:
    assert stage(tmp_path, LOADED + BEGIN + frame("execute_model") + OOM) == "profile"
