"""Reports of guidellm 0.3 and later: one trial for each benchmark in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stallscope.profiler.benchmark.figures import (
    MS,
    Row,
    count,
    inner,
    number,
    positive,
    ratio,
    text,
    told,
)
from stallscope.profiler.trial import Spread, Trial

# Its time_per_output_token counts the first token in; what lies between tokens, one mean for each
# request weighted by tokens, is inter_token_latency: our TPOT.
_LATENCIES: Mapping[str, tuple[str, float]] = {
    "ttft_s": ("time_to_first_token_ms", MS),
    "tpot_s": ("inter_token_latency_ms", MS),
    "e2e_s": ("request_latency", 1.0),
}


def is_report(row: Row) -> bool:
    """Tell whether a row is such a report."""
    return bool(_benchmarks(row))


def trials(row: Row, source: str) -> Iterator[Trial]:
    """Read each benchmark. Its measuring window may reach past the run, so that rates come from
    all requests made where the scheduler tells them."""
    found = _benchmarks(row)
    for i, benchmark in enumerate(found, start=1):
        yield _trial(benchmark, source if len(found) == 1 else f"{source}, benchmark {i}")


def model(row: Row) -> str | None:
    """Name the model."""
    first = _benchmarks(row)[0]
    return text(inner(row, "args"), "model") or text(inner(first, "config", "backend"), "model")


def _benchmarks(row: Row) -> list[Row]:
    found = row.get("benchmarks")
    rows = [b for b in found if isinstance(b, Mapping)] if isinstance(found, list) else []
    return [b for b in rows if inner(b, "metrics", "request_totals")]


def _trial(benchmark: Row, source: str) -> Trial:
    metrics = inner(benchmark, "metrics")
    strategy = inner(benchmark, "config", "strategy") or inner(benchmark, "scheduler", "strategy")
    totals = inner(metrics, "request_totals")
    completed = count(totals, "successful")
    duration, in_flight, rate = _pace(benchmark)
    input_tokens, output_tokens = (
        _mean(metrics, "prompt_token_count"),
        _mean(metrics, "output_token_count"),
    )
    started = positive(benchmark, "start_time")
    return Trial(
        source=source,
        concurrency=_concurrency(strategy),
        rate_per_s=positive(strategy, "rate"),
        completed=completed,
        failed=count(totals, "errored"),
        duration_s=duration,
        input_tokens=input_tokens,
        output_tokens=output_tokens,
        input_tokens_per_s=_product(rate, input_tokens),
        output_tokens_per_s=_product(rate, output_tokens),
        requests_per_s=rate,
        in_flight=in_flight,
        tokens_per_step=None,
        started_unix_ns=round(started * 1e9) if started and started < 1e10 else None,
        latency={} if completed == 0 else _latency(metrics, completed),
    )


def _concurrency(strategy: Row) -> int | None:
    if text(strategy, "type_") == "synchronous":
        return 1
    if text(strategy, "type_") in ("constant", "poisson", "async"):
        return None  # its max_concurrency is a safety cap, not the load
    return count(strategy, "streams", "max_concurrency") or None


def _pace(benchmark: Row) -> tuple[float | None, float | None, float | None]:
    """Return seconds, requests in flight and requests per second, over all requests made."""
    seen, metrics = inner(benchmark, "scheduler_metrics"), inner(benchmark, "metrics")
    begin, end = number(seen, "request_start_time"), number(seen, "request_end_time")
    made = count(inner(seen, "requests_made"), "successful")
    if begin is not None and end is not None and end > begin and made:
        seconds = end - begin
        return (
            seconds,
            ratio(_product(made, positive(seen, "request_time_avg")), seconds),
            (made / seconds),
        )
    seconds_or_none = positive(benchmark, "duration")
    completed = count(inner(metrics, "request_totals"), "successful")
    in_flight = _mean(metrics, "request_concurrency")
    return seconds_or_none, in_flight, ratio(completed, seconds_or_none)


def _product(a: float | None, b: float | None) -> float | None:
    return None if a is None or b is None else a * b


def _mean(metrics: Row, name: str) -> float | None:
    return positive(inner(metrics, name, "successful"), "mean")


def _latency(metrics: Row, completed: int | None) -> dict[str, Spread]:
    found = {}
    for metric, (name, scale) in _LATENCIES.items():
        row = inner(metrics, name, "successful")
        percentiles = inner(row, "percentiles")
        values = {
            "mean": number(row, "mean"),
            "p50": number(row, "median"),
            "p90": number(percentiles, "p90"),
            "p99": number(percentiles, "p99"),
            "least": number(row, "min"),
            "most": number(row, "max"),
        }
        seconds = {f: None if v is None else v * scale for f, v in values.items()}
        n = None if metric == "tpot_s" else completed
        found[metric] = Spread(**seconds, n=n)
    return told(found)
