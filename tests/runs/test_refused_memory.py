"""Real refused allocations end a run as an event with its stage, and keep what ran."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.capture_file import read_capture
from stallscope.runner.engine import Hooks
from stallscope.runner.run import RunOptions, run

pytestmark = pytest.mark.slow


def oom(capture: Capture) -> Event:
    (event,) = (event for event in capture.events if event.kind == "oom")
    return event


def test_a_kv_budget_beyond_the_machine(tmp_path: Path) -> None:
    options = RunOptions("tiny-26m", tmp_path / "run.sqlite", kv_budget=1 << 50)
    capture = read_capture(run(options))
    event = oom(capture)
    blocks = (1 << 50) // (16 * 12_288)
    assert event.data["stage"] == "kv"
    assert event.data["bytes"] == blocks * 16 * 12_288
    assert capture.requests == ()
    probes = [e.data["when"] for e in capture.events if e.data.get("probe") == "gemm"]
    assert probes == ["before", "after"]
    assert capture.subject.device is not None


def test_weights_beyond_the_machine(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 1 << 16,
        "intermediate_size": 1 << 18,
        "num_hidden_layers": 200,
        "num_attention_heads": 512,
        "num_key_value_heads": 8,
        "vocab_size": 32000,
        "max_position_embeddings": 4096,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-5,
    }
    (tmp_path / "config.json").write_text(json.dumps(config))
    options = RunOptions(str(tmp_path), tmp_path / "run.sqlite", requests=1, output_tokens="1")
    capture = read_capture(run(options))
    assert oom(capture).data["stage"] == "weights"
    assert capture.steps == ()


# In a process of its own: the limit on its address space stays. It is set before the second step,
# in which 4,000 prompt tokens need over 100 MB of activations.
STARVED = """
import resource, sys
from itertools import count
from pathlib import Path
from stallscope.runner.engine import Hooks
from stallscope.runner.run import RunOptions, run

steps = count()

def starve():
    if next(steps) == 1:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        limit = pages * resource.getpagesize() + (32 << 20)
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.RLIM_INFINITY))

folder = Path(sys.argv[1])
run(
    RunOptions(
        "tiny-26m", folder / "run.sqlite", trace=folder / "trace.jsonl", warmup=0,
        max_num_batched_tokens=4096, chunked_prefill=False,
    ),
    hooks=Hooks(before_step=starve),
)
"""


def test_a_step_beyond_the_limit_keeps_what_ran(tmp_path: Path) -> None:
    lines = [
        {"arrival_s": 0, "input_tokens": 8, "output_tokens": 3},
        {"arrival_s": 1e-9, "input_tokens": 4000, "output_tokens": 3},
    ]
    (tmp_path / "trace.jsonl").write_text("\n".join(map(json.dumps, lines)))
    done = subprocess.run(
        [sys.executable, "-c", STARVED, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    capture = read_capture(tmp_path / "run.sqlite")
    assert capture.cut is None
    assert oom(capture).data["stage"] == "step"
    assert [(s.phase, s.prefill_tokens) for s in capture.steps] == [("prefill", 8)]
    assert [(r.status, r.output_tokens) for r in capture.requests] == [("failed", 1), ("failed", 0)]
    assert [e.data["when"] for e in capture.events if e.data.get("probe") == "gemm"][0] == "before"


def test_an_interrupt_keeps_what_ran_and_passes_on(tmp_path: Path) -> None:
    calls = []

    def interrupt() -> None:
        calls.append(1)
        if len(calls) == 9:
            raise KeyboardInterrupt

    options = RunOptions("tiny-26m", tmp_path / "run.sqlite", input_tokens="8", warmup=0)
    with pytest.raises(KeyboardInterrupt):
        run(options, hooks=Hooks(before_step=interrupt))
    capture = read_capture(options.capture)
    assert len(capture.steps) == 8
    assert capture.meta["flags"] == ["interrupted"]
    assert not [event for event in capture.events if event.kind == "error"]


# A limit that the weights fit into, and a stream buffer of 1 GiB does not.
SMALL_BUFFER = """
import resource, sys
from pathlib import Path
import torch, psutil
from stallscope.runner.run import RunOptions, run

size = psutil.Process().memory_info().vms + (700 << 20)
resource.setrlimit(resource.RLIMIT_AS, (size, size))
run(RunOptions("tiny-26m", Path(sys.argv[1]), requests=2, input_tokens="16", output_tokens="4"))
"""


def test_a_refused_probe_buffer_is_halved_until_it_fits(tmp_path: Path) -> None:
    path = tmp_path / "run.sqlite"
    done = subprocess.run(
        [sys.executable, "-c", SMALL_BUFFER, str(path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    capture = read_capture(path)
    sizes = [
        e.data["buffer_bytes"]
        for e in capture.events
        if e.data.get("probe") == "stream" and e.data["when"] != "working-set"
    ]
    assert sizes
    assert all(64 << 20 <= size < 1 << 30 for size in sizes)
    assert capture.subject.device is not None
