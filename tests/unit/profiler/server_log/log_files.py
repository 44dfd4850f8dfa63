"""Logs of our own making, in the words that each engine writes."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.server_log.reader import read_server_log

S = 1_000_000_000


def read(folder: Path, text: str | bytes) -> Capture:
    """Write a log and read it."""
    path = folder / "server.log"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_server_log(path)


def series(
    samples: Iterable[EngineSample], name: str, engine: str = "0"
) -> list[tuple[float, float]]:
    """Return one gauge as (second, value)."""
    return [(s.t_ns / S, s.value) for s in samples if s.name == name and s.engine == engine]


def periodic(clock: str, running: int, waiting: int, used: float, *, made: float = 100.0) -> str:
    """Return a line of vLLM V1's."""
    return (
        f"(APIServer pid=7) INFO {clock} [loggers.py:259] Engine 000: Avg prompt throughput: 50.0 "
        f"tokens/s, Avg generation throughput: {made} tokens/s, Running: {running} reqs, Waiting: "
        f"{waiting} reqs, GPU KV cache usage: {used}%, Prefix cache hit rate: 12.5%\n"
    )
