"""What recording costs the run it records: Recorder, NVTX ranges and all samplers, on and off.

Run `python benchmarks/overhead.py [PRESET …]`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from paired import interleave, ratio
from streams import Stream

from stallscope.profiler.recorder import Recorder

PAIRS = 150
PRESETS = ("tiny-26m", "llama-125m")
BLOCK_S = 0.8  # two commits, and a sample of the host or two
TRIAL_STEPS = 20
FIRST_STEPS = 5  # of each block, not timed: the recorder's threads start and probe their fields


def record(recorder: Recorder, stream: Stream, steps: int) -> None:
    """Decode with everything that `stallscope run` records of a step."""
    token_bytes = stream.executor.kv_bytes_per_token
    for _ in range(steps):
        context = stream.position + 1
        with recorder.decode(1, context_tokens=context) as step:
            step.add_forward(stream.decode())
        recorder.token(0)
        recorder.kv_traffic(1, context, token_bytes)
        recorder.set_engine_state(waiting=0, running=1, kv_used_bytes=0, kv_total_bytes=0)


def decode(stream: Stream, steps: int) -> None:
    """Decode with nothing around it."""
    for _ in range(steps):
        stream.decode()


def timed_s(stream: Stream, steps: int, run: Callable[[int], None]) -> float:
    """Return how long `run` takes for `steps` steps, after a few that do not count."""
    stream.restart()
    run(FIRST_STEPS)
    start_s = time.perf_counter()
    run(steps)
    return time.perf_counter() - start_s


def recorded_s(stream: Stream, steps: int, folder: Path) -> float:
    """Time a block under a Recorder of its own."""
    with Recorder(folder / "run.sqlite", force=True) as recorder:
        return timed_s(stream, steps, lambda n: record(recorder, stream, n))


def bare_s(stream: Stream, steps: int) -> float:
    """Time a block alone."""
    return timed_s(stream, steps, lambda n: decode(stream, n))


def steps_for(preset: str, block_s: float) -> int:
    """Return how many bare steps take `block_s` here, the fastest of a few tries."""
    trial = Stream(preset, tokens=FIRST_STEPS + TRIAL_STEPS + 1)
    step_s = min(bare_s(trial, TRIAL_STEPS) for _ in range(3)) / TRIAL_STEPS
    return max(TRIAL_STEPS, round(block_s / step_s))


def main() -> None:
    """Print the cost for each preset."""
    for preset in sys.argv[1:] or PRESETS:
        steps = steps_for(preset, BLOCK_S)
        stream = Stream(preset, tokens=FIRST_STEPS + steps + 1)
        bare_s(stream, steps)
        with tempfile.TemporaryDirectory() as folder:
            pairs = interleave(
                lambda s=stream, n=steps, f=Path(folder): recorded_s(s, n, f),
                lambda s=stream, n=steps: bare_s(s, n),
                pairs=PAIRS,
            )
        step_ms = sorted(b for _, b in pairs)[PAIRS // 2] / steps * 1e3
        print(
            f"{preset}: {steps} steps of {step_ms:.2f} ms a block; recorded / bare {ratio(pairs)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
