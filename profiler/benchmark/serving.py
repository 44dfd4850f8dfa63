"""Rows of vLLM's `bench serve` and its relatives: benchmark_serving.py, sweeps, SGLang's client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stallscope.profiler.benchmark.arrays import array_spreads, start_unix_ns
from stallscope.profiler.benchmark.figures import (
    MS,
    Row,
    count,
    load,
    number,
    positive,
    ratio,
    spread,
    text,
    told,
)
from stallscope.profiler.trial import Spread, Trial

# SGLang calls the whole request e2e_latency, vLLM e2el.
_CALLED: Mapping[str, tuple[str, ...]] = {
    "ttft_s": ("ttft",),
    "tpot_s": ("tpot",),
    "itl_s": ("itl",),
    "e2e_s": ("e2el", "e2e_latency"),
}
_FIGURES = {"mean": "mean", "p50": "median", "p90": "p90", "p99": "p99", "most": "max"}


def is_serving(row: Row) -> bool:
    """Tell whether a row is one of these results: token totals, and a rate or a latency."""
    has_totals = "total_input_tokens" in row and "completed" in row
    return has_totals and ("output_throughput" in row or "request_throughput" in row)


def trials(row: Row, source: str) -> Iterator[Trial]:
    """Read one row. Some forks write seconds: their keys have no `_ms`."""
    completed, duration = count(row, "completed"), positive(row, "duration")
    output_s, input_s = positive(row, "output_throughput"), positive(row, "input_throughput")
    total_in = positive(row, "total_input_tokens")
    yield Trial(
        source=source,
        **load(count(row, "max_concurrency"), positive(row, "request_rate")),
        completed=completed,
        failed=_failed(row, completed),
        duration_s=duration,
        input_tokens=ratio(total_in, completed),
        output_tokens=ratio(positive(row, "total_output_tokens"), completed),
        input_tokens_per_s=input_s or ratio(total_in, duration),
        output_tokens_per_s=output_s,
        requests_per_s=positive(row, "request_throughput") or ratio(completed, duration),
        in_flight=positive(row, "concurrency"),
        tokens_per_step=_tokens_per_step(row),
        started_unix_ns=start_unix_ns(row),
        label=text(row, "label", "tag"),
        latency={} if completed == 0 else _latency(row, completed),
    )


def _failed(row: Row, completed: int | None) -> int | None:
    stated = count(row, "failed", "num_failed_requests")
    asked = count(row, "num_prompts")
    if stated is not None or asked is None or completed is None:
        return stated
    return max(0, asked - completed)


def _tokens_per_step(row: Row) -> float | None:
    """Speculative decoding: the mean tokens that one pass of the model yields."""
    names = ("spec_decode_acceptance_length", "accept_length", "avg_decoded_tokens_per_iter")
    return positive(row, *names)


def _latency(row: Row, completed: int | None) -> dict[str, Spread]:
    exact = array_spreads(row)
    return told({m: exact.get(m) or _spread(row, m, completed) for m in _CALLED})


def _spread(row: Row, metric: str, completed: int | None) -> Spread:
    n = completed if metric in ("ttft_s", "e2e_s") else None
    for called in _CALLED[metric]:
        for suffix, scale in (("_ms", MS), ("", 1.0)):
            names = {f: (f"{figure}_{called}{suffix}",) for f, figure in _FIGURES.items()}
            if any(number(row, *keys) is not None for keys in names.values()):
                return spread(row, names, scale, n)
    return Spread()
