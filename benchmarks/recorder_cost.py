"""What a recorded step costs: the caller's time, and the CPU time of all threads together.

Run `python benchmarks/recorder_cost.py`. Variants take turns in blocks within one process, since
timings between processes differ by more than the cost itself; medians over the blocks are printed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from stallscope.profiler.ranges import phase_range
from stallscope.profiler.recorder import Recorder

BLOCKS = 20
STEPS = 2_000


def clock_pair(_: Recorder) -> None:
    time.perf_counter_ns()
    time.perf_counter_ns()


def range_alone(_: Recorder) -> None:
    with phase_range("decode", 8):
        pass


def step(recorder: Recorder) -> None:
    with recorder.decode(8, context_tokens=5120):
        pass


def step_with_forward(recorder: Recorder) -> None:
    with recorder.decode(8, context_tokens=5120) as span, span.forward():
        pass


def step_with_forward_and_8_tokens(recorder: Recorder) -> None:
    with recorder.decode(8, context_tokens=5120) as span, span.forward():
        pass
    for request in range(8):
        recorder.token(request)


VARIANTS: tuple[Callable[[Recorder], None], ...] = (
    clock_pair,
    range_alone,
    step,
    step_with_forward,
    step_with_forward_and_8_tokens,
)


def block_ns(variant: Callable[[Recorder], None], recorder: Recorder) -> tuple[float, float]:
    """Return wall and CPU nanoseconds per step; the writer's share falls into the CPU time."""
    wall_ns, cpu_ns = time.perf_counter_ns(), time.process_time_ns()
    for _ in range(STEPS):
        variant(recorder)
    wall_ns = time.perf_counter_ns() - wall_ns
    time.sleep(0.25)  # let the writer commit this block's rows before the next one
    return wall_ns / STEPS, (time.process_time_ns() - cpu_ns) / STEPS


def main() -> None:
    """Print one line per variant."""
    results: dict[str, list[tuple[float, float]]] = {variant.__name__: [] for variant in VARIANTS}
    with (
        tempfile.TemporaryDirectory() as folder,
        Recorder(Path(folder) / "cost.sqlite") as recorder,
    ):
        for _ in range(BLOCKS):
            for variant in VARIANTS:
                results[variant.__name__].append(block_ns(variant, recorder))
    print(f"{'ns per step':32} {'caller':>8} {'all threads':>12}")
    for name, pairs in results.items():
        wall_ns, cpu_ns = (statistics.median(column) for column in zip(*pairs, strict=True))
        print(f"{name:32} {wall_ns:8.0f} {cpu_ns:12.0f}")


if __name__ == "__main__":
    main()
