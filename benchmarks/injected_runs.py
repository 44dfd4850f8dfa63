"""Runs of the built-in engine on the CPU with a cause put in from outside, and their captures.

Nothing here is known to the engine or to the rules: a sleep sits in the hook before each step, a
throttled copy in the one that fetches what a step needs, the caps are the options that any user
has, the neighbours are other processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from stallscope.profiler.capture import Capture
from stallscope.profiler.capture_file import read_capture
from stallscope.runner.engine import Hooks
from stallscope.runner.run import RunOptions, run

LEAST_S = 0.010  # that a sleep takes
TIMES = 3.0  # the rest of the step before: 75 % of a step is the cause's, on a slow machine too
KV_BYTES_PER_TOKEN = {"tiny-26m": 12_288, "small": 8_192}  # 2 · layers · KV heads · head_dim · 4
KV_SHARE = 0.35  # of what the requests in flight need in all
SMALL = {
    "model_type": "llama",
    **{"hidden_size": 256, "intermediate_size": 688, "num_hidden_layers": 4, "vocab_size": 8000},
    **{"num_attention_heads": 4, "num_key_value_heads": 4, "max_position_embeddings": 2048},
}


@dataclass(frozen=True, slots=True)
class Size:
    """A load: requests in all and at once, and their tokens."""

    model: str
    requests: int
    concurrency: int
    input_tokens: int
    output_tokens: int

    def __str__(self) -> str:
        tokens = f"{self.input_tokens}+{self.output_tokens}"
        return f"{self.model} {self.requests}/{self.concurrency} {tokens}"


LAYER_BYTES = 4 << 20  # of an offloaded layer's weights, copied before each step
CHUNK_BYTES = 1 << 18


@dataclass(slots=True)
class Pace:
    """How long to hold a step up, from what the step before took without that."""

    _left_ns: int | None = None

    def delay_s(self) -> float:
        """Say how long, at the begin of a step."""
        rest_s = 0.0 if self._left_ns is None else (time.perf_counter_ns() - self._left_ns) * 1e-9
        return max(LEAST_S, TIMES * rest_s)

    def leave(self) -> None:
        """Note that the step goes on."""
        self._left_ns = time.perf_counter_ns()


class Link:
    """A layer's weights that lie elsewhere, and a link that is slow: chunks are held back."""

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._there, self._here = bytes(LAYER_BYTES), bytearray(LAYER_BYTES)

    def fetch(self) -> int:
        """Copy them all, as fast as the link goes, and return how many bytes they were."""
        start_s, length_s = time.perf_counter(), self._pace.delay_s()
        for at in range(0, LAYER_BYTES, CHUNK_BYTES):
            end = at + CHUNK_BYTES
            self._here[at:end] = self._there[at:end]
            due_s = start_s + length_s * end / LAYER_BYTES
            time.sleep(max(0.0, due_s - time.perf_counter()))
        self._pace.leave()
        return LAYER_BYTES


SPIN = """
import os, sys
os.sched_setaffinity(0, {int(sys.argv[1])})
while os.path.exists("/proc/" + sys.argv[2]):
    for _ in range(1_000_000):
        pass
"""


@contextlib.contextmanager
def neighbours() -> Iterator[None]:
    """Keep each core that we may use busy with another process, pinned to it.

    A shell starts them and ends, so that they are not children of ours: those would count as the
    engine's own workers. They end by themselves when we do.
    """
    start = '"$0" -c "$1" "$2" "$3" >/dev/null 2>&1 & echo $!'
    busy = [
        int(subprocess.check_output(["sh", "-c", start, sys.executable, SPIN, core, own]))
        for own in [str(os.getpid())]
        for core in map(str, sorted(os.sched_getaffinity(0)))
    ]
    try:
        yield
    finally:
        for process in busy:
            os.kill(process, signal.SIGKILL)


def capture_of(cause: str, seed: int, size: Size) -> Capture:
    """Run a size with a cause, or with none ("clean"), and return what was recorded."""
    with tempfile.TemporaryDirectory() as folder:
        options = _options(Path(folder), cause, seed, size)
        with neighbours() if cause == "device" else contextlib.nullcontext():
            run(options, hooks=_hooks(cause))
        return read_capture(options.capture)


def _hooks(cause: str) -> Hooks:
    pace = Pace()

    def sleep() -> None:
        time.sleep(pace.delay_s())
        pace.leave()

    if cause == "interconnect":
        return Hooks(fetch=Link(pace).fetch)
    return Hooks(before_step=sleep if cause == "host" else None)


def _options(folder: Path, cause: str, seed: int, size: Size) -> RunOptions:
    model = size.model
    if model == "small":
        model = str(folder / "config.json")
        Path(model).write_text(json.dumps(SMALL))
    tokens = size.concurrency * (size.input_tokens + size.output_tokens)
    need = tokens * KV_BYTES_PER_TOKEN[size.model]
    return RunOptions(
        model=model,
        capture=folder / "run.sqlite",
        device="cpu",
        input_tokens=str(size.input_tokens),
        output_tokens=str(size.output_tokens),
        requests=size.requests,
        concurrency=size.concurrency,
        max_num_seqs=max(1, size.concurrency // 4) if cause == "scheduling" else 64,
        kv_budget=round(KV_SHARE * need) if cause == "capacity" else 2 * need,
        seed=seed,
        warmup=1,
    )
