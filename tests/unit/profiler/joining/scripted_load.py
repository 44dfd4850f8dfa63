"""One load, scripted, as each source would have recorded it: so the right offset is known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

NOON = datetime(2025, 6, 17, 12, 0, 0, tzinfo=UTC)
NEW_YEAR = datetime(2025, 12, 31, 23, 54, 0, tzinfo=UTC)
CAP = 32  # running requests
PERIOD_S = 10.0
CSV_HEADER = "timestamp, index, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB]\n"


@dataclass(frozen=True, slots=True)
class Load:
    """So many requests in flight from one second to another, after `start` (true time)."""

    bursts: tuple[tuple[float, float, int], ...]
    seconds: float
    start: datetime = NOON

    def in_flight(self, second: float) -> int:
        """Count the requests in the system."""
        return sum(n for begin, end, n in self.bursts if begin <= second < end)

    def busy_s(self, begin_s: float, end_s: float) -> float:
        """Return how long something was in flight."""
        return sum(max(0.0, min(e, end_s) - max(b, begin_s)) for b, e, _ in self.bursts)


# No two bursts or pauses are of a length.
LOAD = Load(((60.0, 145.3, 16), (190.7, 260.2, 40), (331.9, 420.4, 24), (505.1, 575.6, 40)), 640.0)


def server_log(load: Load, *, ahead_s: float = 0.0, until_s: float = math.inf) -> str:
    """Return vLLM's log: a line every ten seconds and one when all is done, none while idle."""
    told, was_busy = [_stamped(load, ahead_s, "vLLM API server version 0.11.0")], False
    seconds = PERIOD_S
    while seconds <= min(load.seconds, until_s):
        busy_s = load.busy_s(seconds - PERIOD_S, seconds)
        if busy_s or was_busy:
            told.append(_stamped(load, ahead_s + seconds, _gauges(load, seconds, busy_s)))
        was_busy, seconds = busy_s > 0, seconds + PERIOD_S
    return "".join(told)


def _gauges(load: Load, seconds: float, busy_s: float) -> str:
    flight = load.in_flight(seconds)
    running = min(flight, CAP)
    made = 1000.0 * busy_s / PERIOD_S
    return (
        f"Engine 000: Avg prompt throughput: {made / 10:.1f} tokens/s, Avg generation throughput: "
        f"{made:.1f} tokens/s, Running: {running} reqs, Waiting: {flight - running} reqs, GPU KV "
        f"cache usage: {running:.1f}%, Prefix cache hit rate: 0.0%"
    )


def _stamped(load: Load, seconds: float, text: str) -> str:
    at = load.start + timedelta(seconds=seconds)
    return f"(APIServer pid=7) INFO {at:%m-%d %H:%M:%S} [loggers.py:259] {text}\n"


def gpu_csv(
    load: Load,
    *,
    ahead_s: float = 0.0,
    every_s: float = 1.0,
    from_s: float = 0.0,
    until_s: float = math.inf,
    clock: Callable[[float], float] = lambda second: second,
) -> str:
    """Return nvidia-smi's CSV: busy where anything was in flight in the second before.

    `clock` maps true seconds to those of a clock that runs wrong.
    """
    rows = []
    for second in _every(every_s, from_s, min(load.seconds, until_s)):
        at = load.start + timedelta(seconds=clock(second) + ahead_s)
        util = 95 if load.busy_s(second - min(1.0, every_s), second) else 0
        stamp = f"{at:%Y/%m/%d %H:%M:%S}.{at.microsecond // 1000:03d}"
        rows.append(f"{stamp}, 0, NVIDIA H100 80GB HBM3, {util} %, 70000 MiB, 81559 MiB\n")
    return CSV_HEADER + "".join(rows)


def _every(step_s: float, from_s: float, until_s: float) -> Iterator[float]:
    for index in range(int((until_s - from_s) / step_s) + 1):
        yield from_s + index * step_s


def metrics_pages(
    load: Load, *, ahead_s: float = 0.0, from_s: float = 0.3, until_s: float = math.inf
) -> str:
    """Return vLLM's /metrics once a second, each page behind its scrape's Unix time."""
    pages = []
    for second in _every(1.0, from_s, min(load.seconds, until_s)):
        unix_ms = round((load.start.timestamp() + ahead_s + second) * 1000)
        flight, made = load.in_flight(second), 1000.0 * load.busy_s(0.0, second)
        running, labels = min(flight, CAP), '{engine="0",model_name="meta/Llama-3-8B"}'
        values = {
            "num_requests_running": running,
            "num_requests_waiting": flight - running,
            "kv_cache_usage_perc": running / 100,
            "prompt_tokens_total": made / 10,
            "generation_tokens_total": made,
        }
        lines = (f"vllm:{name}{labels} {value}\n" for name, value in values.items())
        pages.append(f"# scrape_unix_ms {unix_ms}\n" + "".join(lines))
    return "".join(pages)


def bench_json(
    load: Load,
    *,
    burst: int = 2,
    clients: int | None = None,
    ahead_s: float = 0.0,
    written_s: float = 1.4,
    is_detailed: bool = False,
    is_dated: bool = True,
) -> str:
    """Return what `vllm bench serve` wrote of one burst: waves of three requests for each client.

    Its date is local time as the file was written, `written_s` after the last request. `clients`
    is what it claims to have offered.
    """
    begin_s, end_s, flight = load.bursts[burst]
    duration, each_s = end_s - begin_s, (end_s - begin_s) / 3
    written = load.start + timedelta(seconds=end_s + written_s + ahead_s)
    count, ttft_s = 3 * flight, 0.5
    row = {
        **({"date": f"{written:%Y%m%d-%H%M%S}"} if is_dated else {}),
        "backend": "vllm",
        "model_id": "meta/Llama-3-8B",
        "num_prompts": count,
        "request_rate": "inf",
        "max_concurrency": clients or flight,
        "duration": duration,
        "completed": count,
        "total_input_tokens": 100 * count,
        "total_output_tokens": 60 * count,
        "request_throughput": count / duration,
        "output_throughput": 60 * count / duration,
        "mean_ttft_ms": 1000 * ttft_s,
        "median_ttft_ms": 1000 * ttft_s,
        "mean_tpot_ms": 1000 * (each_s - ttft_s) / 59,
        "mean_e2el_ms": 1000 * each_s,
    }
    if is_detailed:
        row |= {
            "input_lens": [100] * count,
            "output_lens": [60] * count,
            "ttfts": [ttft_s] * count,
            "itls": [[(each_s - ttft_s) / 59] * 59] * count,
            "start_times": [7000.0 + wave * each_s for wave in range(3) for _ in range(flight)],
            "errors": [""] * count,
        }
    return json.dumps(row)
