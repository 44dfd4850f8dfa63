"""Out of memory and failed starts, each at its stage; what is not a failure stays none."""

from __future__ import annotations

from pathlib import Path

import pytest
from log_files import periodic, read

from stallscope.profiler.capture import Event

P = "(EngineCore pid=2) "
AT = "08-18 02:57:59 [x.py:1]"
FLAGS = f"(APIServer pid=1) INFO {AT} non-default args: {{'model': 'a/b'}}\n"
LOAD = f"{P}INFO {AT} Starting to load model a/b...\n"
LOADED = f"{P}INFO {AT} Model loading took 95.63 GiB memory and 748.4 seconds\n"
SIZED = f"{P}INFO {AT} Available KV cache memory: 4.00 GiB\n"
POOL = f"{P}INFO {AT} GPU KV cache size: 94,135 tokens\n"
GRAPHS = f"{P}Capturing CUDA graphs (decode, FULL):   6%|6\n"
READY = "INFO:     Application startup complete.\n"
OOM = (
    f"{P}torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 304.00 MiB. GPU 0 has a "
    "total capacity of 23.50 GiB\n"
)


def events(folder: Path, *lines: str) -> tuple[Event, ...]:
    return read(folder, "".join(lines)).events


@pytest.mark.parametrize(
    ("before", "stage"),
    [
        ((FLAGS,), "starting"),  # that it started tells of none of its stages
        ((FLAGS, LOAD), "weights"),
        ((FLAGS, LOAD, LOADED), "profile"),
        ((FLAGS, LOAD, LOADED, SIZED), "kv"),
        ((FLAGS, LOAD, LOADED, SIZED, POOL), "warmup"),
        ((FLAGS, LOAD, LOADED, SIZED, POOL, GRAPHS), "graphs"),
        ((FLAGS, LOAD, LOADED, SIZED, POOL, GRAPHS, READY), "serving"),
        ((FLAGS, LOAD, LOADED, SIZED, POOL, READY, periodic("08-18 03:00:00", 1, 0, 1)), "serving"),
    ],
)
def test_out_of_memory_at_each_stage(before: tuple[str, ...], stage: str, tmp_path: Path) -> None:
    (event,) = events(tmp_path, *before, OOM, OOM)
    assert (event.kind, event.data["stage"], event.data["bytes"]) == ("oom", stage, 304 * 2**20)
    assert event.data["message"].startswith("CUDA out of memory. Tried to allocate 304.00 MiB.")


@pytest.mark.parametrize(
    ("line", "stage"),
    [
        (
            "ValueError: No available memory for the cache blocks. Try increasing `gpu_mem`",
            "kv_sizing",
        ),
        (
            "ValueError: To serve at least one request with the models's max seq len (8192), (8.0 "
            "GiB KV cache is needed, which is larger than the available KV cache memory (2.0 GiB).",
            "kv_sizing",
        ),
        (
            "RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.",
            "kv_sizing",
        ),
        (
            "ValueError: Free memory on device (3.1/23.5 GiB) on startup is less than desired GPU "
            "memory utilization (0.9, 21.2 GiB).",
            "start",
        ),
        (
            "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy "
            "requests.",
            "warmup",
        ),
        ("Exception: Capture cuda graph failed: CUDA out of memory. Tried to", "graphs"),
        (
            "ggml_backend_cuda: allocating 5000 MiB on device 0: cudaMalloc failed: out of memory",
            "weights",
        ),
        ("RuntimeError: HIP error: out of memory", "weights"),
        ("RuntimeError: HIP out of memory. Tried", "weights"),
        ("[12345.6] Out of memory: Killed process 99 (python)", "weights"),
        ("terminate called: what():  std::bad_alloc", "weights"),
    ],
)
def test_what_engines_and_allocators_say(line: str, stage: str, tmp_path: Path) -> None:
    (event,) = events(tmp_path, FLAGS, LOAD, f"{line}\n")
    assert (event.kind, event.data["stage"]) == ("oom", stage)


def test_advice_and_warnings_are_no_refusals(tmp_path: Path) -> None:
    advice = f"{P}WARNING {AT} If you see CUDA out of memory, lower it: OutOfMemoryError: x\n"
    assert events(tmp_path, FLAGS, advice, READY) == ()


def test_a_start_that_fails_names_its_root(tmp_path: Path) -> None:
    error, check = events(
        tmp_path,
        FLAGS,
        LOAD,
        f"{P}ERROR {AT} Traceback (most recent call last):\n",
        f"{P}ERROR {AT} RuntimeError: level_zero backend failed with error: 20 (DEVICE_LOST)\n",
        "RuntimeError: Engine core initialization failed. See root cause above.\n",
    )
    assert error.data == {
        "type": "RuntimeError",
        "message": "level_zero backend failed with error: 20 (DEVICE_LOST)",
        "stage": "weights",
    }
    assert (check.data["class"], check.data["blocks"]) == ("undetermined", ["verdict"])
    assert check.data["sentence"] == (
        "The server did not start; it failed while it loaded the weights: level_zero backend "
        "failed with error: 20 (DEVICE_LOST)."
    )


def test_a_refused_setting_and_a_refused_argument(tmp_path: Path) -> None:
    refused = (
        "(APIServer pid=1) pydantic_core._pydantic_core.ValidationError: 1 validation error for X\n"
        "(APIServer pid=1)   Value error, User-specified max_model_len (9) is greater than 4.\n"
    )
    error, _ = events(tmp_path, FLAGS, refused)
    assert error.data["message"] == "User-specified max_model_len (9) is greater than 4."
    error, _ = events(tmp_path, "vllm: error: unrecognized arguments: --no-such-flag 3\n")
    assert error.data["message"] == "unrecognized arguments: --no-such-flag 3"


def test_errors_that_a_server_survives_are_none(tmp_path: Path) -> None:
    assert events(tmp_path, FLAGS, "ImportError: no such plugin\n", READY) == ()


def test_an_engine_that_dies_while_it_serves(tmp_path: Path) -> None:
    dead = (
        f"{P}ERROR {AT} RuntimeError: CUDA error: an illegal memory access was encountered\n"
        f"(APIServer pid=1) ERROR {AT} vllm.v1.engine.exceptions.EngineDeadError: EngineCore "
        "encountered an issue. See stack trace (above) for the root cause.\n"
    )
    error, end = events(tmp_path, FLAGS, READY, dead)
    assert end.data == {
        "sentence": "The server died while it served: CUDA error: an illegal memory access was "
        "encountered.",
        "ends": True,
    }
    assert error.data["message"] == "CUDA error: an illegal memory access was encountered"
    assert error.data["stage"] == "serving"


def test_a_start_that_ends_in_silence(tmp_path: Path) -> None:
    (check,) = events(tmp_path, FLAGS, LOAD, LOADED)
    assert check.data["class"] == "undetermined"
    assert check.data["sentence"].startswith("The log ends while it measured how much memory")
    (check,) = events(
        tmp_path,
        FLAGS,
        LOAD,
        f"{P}INFO {AT} Filesystem: EXT4. Checkpoint size: 92.85 GiB. Available RAM: 15.10 GiB.\n",
        LOADED,
    )
    assert (check.data["class"], check.data["most_confidence"]) == ("capacity", 0.6)
    assert "15.1 GiB of memory free for a checkpoint of 92.8 GiB" in check.data["sentence"]
    assert events(tmp_path, FLAGS, LOAD, "KeyboardInterrupt\n") == ()


TORCH = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 304.00 MiB. GPU 0 has a total "
    "capacity of 23.52 GiB of which 212.00 MiB is free. Including non-PyTorch memory, this process "
    "has 23.30 GiB memory in use. Of the allocated memory 20.10 GiB is allocated by PyTorch, and "
    "914.00 MiB is reserved by PyTorch but unallocated."
)
WARMED = (
    "RuntimeError: CUDA out of memory occurred when warming up sampler with 256 dummy requests."
)


def test_torch_says_what_was_free_and_what_it_held(tmp_path: Path) -> None:
    (event,) = events(tmp_path, FLAGS, LOAD, f"{P}ERROR {AT} {TORCH}\n")
    sizes = {n: event.data[n] / 2**20 for n in ("bytes", "free_bytes", "unused_bytes")}
    assert sizes == {"bytes": 304, "free_bytes": 212, "unused_bytes": 914}
    assert "buffer" not in event.data
    old = "CUDA out of memory. Tried to allocate 2.00 GiB (GPU 0; 23.52 GiB total capacity; 20.00 "
    old += "GiB already allocated; 1.50 GiB free; 21.00 GiB reserved in total by PyTorch)"
    (event,) = events(tmp_path, FLAGS, LOAD, f"torch.cuda.OutOfMemoryError: {old}\n")
    assert (event.data["bytes"], event.data["free_bytes"]) == (2 << 30, 3 << 29)


def test_an_error_raised_after_it_names_the_sampler_and_its_rows(tmp_path: Path) -> None:
    error = f"{P}ERROR {AT} "
    (event,) = events(tmp_path, FLAGS, LOAD, f"{error}{TORCH}\n", f"{error}{WARMED}\n")
    assert (event.data["buffer"], event.data["rows"]) == ("logits", 256)


@pytest.mark.parametrize(
    ("line", "is_logits"),
    [
        (f'{P}ERROR {AT}   File "vllm/v1/sample/rejection_sampler.py", line 1, in forward', True),
        (f"{P}ERROR {AT}     logits = logits.to(torch.float32)", True),
        (f"{P}INFO {AT} Using FlashInfer for top-p & top-k sampling, logits in fp32", False),
        (f'{P}ERROR {AT}   File "vllm/model_executor/layers/linear.py", line 1, in apply', False),
    ],
)
def test_a_traceback_through_the_sampler(tmp_path: Path, line: str, is_logits: bool) -> None:
    (event,) = events(tmp_path, FLAGS, LOAD, f"{line}\n", f"{P}ERROR {AT} {TORCH}\n")
    assert (event.data.get("buffer") == "logits") is is_logits
