"""What recording costs the run it records: Recorder, NVTX ranges and all samplers, on and off.

Run `python benchmarks/overhead.py [PRESET …]`.
"""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path

from paired import interleave, ratio
from streams import Stream

from stallscope.profiler.recorder import Recorder

PAIRS = 60
STEPS = {"tiny-26m": 60, "llama-125m": 20}


def recorded_s(stream: Stream, steps: int, folder: Path) -> float:
    """Decode with everything that `stallscope run` records of a step."""
    stream.restart()
    with Recorder(folder / "run.sqlite", force=True) as recorder:
        start_s = time.perf_counter()
        for _ in range(steps):
            context = stream.position + 1
            with recorder.decode(1, context_tokens=context) as step:
                step.add_forward(stream.decode())
            recorder.token(0)
            recorder.event("kv_append", tokens=1, bytes=stream.executor.kv_bytes_per_token)
            recorder.event(
                "kv_read", tokens=context, bytes=context * stream.executor.kv_bytes_per_token
            )
            recorder.set_engine_state(waiting=0, running=1, kv_used_bytes=0, kv_total_bytes=0)
        return time.perf_counter() - start_s


def bare_s(stream: Stream, steps: int) -> float:
    """Decode with nothing around it."""
    stream.restart()
    start_s = time.perf_counter()
    for _ in range(steps):
        stream.decode()
    return time.perf_counter() - start_s


def main() -> None:
    """Print the cost for each preset."""
    for preset in sys.argv[1:] or STEPS:
        steps = STEPS.get(preset, 20)
        stream = Stream(preset, tokens=steps + 1)
        bare_s(stream, steps)
        with tempfile.TemporaryDirectory() as folder:
            pairs = interleave(
                lambda s=stream, n=steps, f=Path(folder): recorded_s(s, n, f),
                lambda s=stream, n=steps: bare_s(s, n),
                pairs=PAIRS,
            )
        step_ms = sorted(b for _, b in pairs)[PAIRS // 2] / steps * 1e3
        print(f"{preset}: {step_ms:.2f} ms a step; recorded / bare {ratio(pairs)}")


if __name__ == "__main__":
    main()
