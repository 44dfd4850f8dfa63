"""What recording costs the run it records: Recorder, NVTX ranges and all samplers, on and off.

Run `python benchmarks/overhead.py [PRESET …]`, 200 s for each.
"""

from __future__ import annotations

import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

from recording_cost import TimedStep, recording_cost
from streams import Stream

from stallscope.profiler.recorder import Recorder

PRESETS = ("tiny-26m", "llama-125m")
BLOCKS = 40  # each under a Recorder of its own
BLOCK_S = 5.0  # a dozen commits, ten samples of the host
CONTEXT_STEPS = 200  # then the request starts over, so that attention stays small
FIRST_STEPS = 5  # not timed: the recorder's threads start and probe their fields
THREADS = "stallscope-"


def record(recorder: Recorder, stream: Stream) -> None:
    """Decode a token with everything that `stallscope run` records of a step."""
    context = stream.position + 1
    with recorder.decode(1, context_tokens=context) as step:
        step.add_forward(stream.decode())
    recorder.token(0)
    recorder.kv_traffic(1, context, stream.executor.kv_bytes_per_token)
    recorder.set_engine_state(waiting=0, running=1, kv_used_bytes=0, kv_total_bytes=0)


def recorder_clocks() -> list[int]:
    """Return the CPU clocks of the threads that a Recorder has started."""
    return [
        time.pthread_getcpuclockid(thread.ident)
        for thread in threading.enumerate()
        if thread.ident is not None and thread.name.startswith(THREADS)
    ]


def time_block(stream: Stream, path: Path, block_s: float, rng: random.Random) -> list[TimedStep]:
    """Time steps in pairs, one recorded and one not, while one Recorder's threads run on."""
    timed: list[TimedStep] = []
    end_s = time.perf_counter() + block_s
    with Recorder(path, force=True) as recorder:
        arms: list[tuple[bool, Callable[[], object]]] = [
            (True, lambda: record(recorder, stream)),
            (False, stream.decode),
        ]
        while time.perf_counter() < end_s:
            stream.restart()
            for _ in range(FIRST_STEPS):
                record(recorder, stream)
            clocks = recorder_clocks()
            busy_s = sum(map(time.clock_gettime, clocks))
            for _ in range(CONTEXT_STEPS // 2):
                rng.shuffle(arms)
                for recorded, run in arms:
                    start_s = time.perf_counter()
                    run()
                    step_s = time.perf_counter() - start_s
                    now_s = sum(map(time.clock_gettime, clocks))
                    timed.append(TimedStep(recorded, step_s, now_s - busy_s))
                    busy_s = now_s
    return timed


def main() -> None:
    """Print the cost for each preset."""
    for preset in sys.argv[1:] or PRESETS:
        stream = Stream(preset, tokens=FIRST_STEPS + CONTEXT_STEPS + 1)
        rng = random.Random(0)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "run.sqlite"
            time_block(stream, path, BLOCK_S, rng)
            blocks = [time_block(stream, path, BLOCK_S, rng) for _ in range(BLOCKS)]
        print(f"{preset}: {recording_cost(blocks)}", flush=True)


if __name__ == "__main__":
    main()
