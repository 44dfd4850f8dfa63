"""Summaries of inference-perf: by its own clock (lifecycle), or from the server's metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from stallscope.profiler.benchmark.figures import (
    Row,
    count,
    inner,
    number,
    positive,
    ratio,
    spread,
    told,
)
from stallscope.profiler.trial import Spread, Trial

_LATENCIES = {
    "ttft_s": "time_to_first_token",
    "tpot_s": "time_per_output_token",
    "itl_s": "inter_token_latency",
    "e2e_s": "request_latency",
}
_NAMES: Mapping[str, tuple[str, ...]] = {
    "mean": ("mean",),
    "p50": ("median", "p50"),
    "p90": ("p90",),
    "p99": ("p99",),
    "least": ("min",),
    "most": ("max",),
}


def is_summary(row: Row) -> bool:
    """Tell whether a row is a summary of a stage or of all."""
    return isinstance(row.get("successes"), Mapping) and isinstance(
        row.get("load_summary"), Mapping
    )


def of_server(row: Row) -> bool:
    """Tell whether the figures are the server's own, asked of Prometheus."""
    return "queue_len" in inner(row, "successes")


def trials(row: Row, source: str) -> Iterator[Trial]:
    """Read a summary; all times are in seconds."""
    yield _of_server(row, source) if of_server(row) else _of_client(row, source)


def _of_client(row: Row, source: str) -> Trial:
    load, seen = inner(row, "load_summary"), inner(row, "successes")
    completed, rates = count(seen, "count"), inner(seen, "throughput")
    per_s = positive(rates, "requests_per_sec")
    return Trial(
        source=source,
        concurrency=count(load, "concurrency") or None,
        rate_per_s=positive(load, "requested_rate"),
        completed=completed,
        failed=count(inner(row, "failures"), "count"),
        duration_s=ratio(completed, per_s),
        input_tokens=positive(inner(seen, "prompt_len"), "mean"),
        output_tokens=positive(inner(seen, "output_len"), "mean"),
        input_tokens_per_s=positive(rates, "input_tokens_per_sec"),
        output_tokens_per_s=positive(rates, "output_tokens_per_sec"),
        requests_per_s=per_s,
        sent_per_s=positive(load, "achieved_rate"),
        send_delay_s=number(inner(load, "schedule_delay"), "mean"),
        latency=_latency(inner(seen, "latency"), completed) if completed else {},
    )


def _of_server(row: Row, source: str) -> Trial:
    """Its prompt_len and output_len have means that are no lengths: only their rates are used."""
    seen = inner(row, "successes")
    completed, per_s = count(seen, "count"), positive(seen, "rate")
    return Trial(
        source=source,
        completed=completed,
        failed=count(inner(row, "failures"), "count"),
        duration_s=ratio(completed, per_s),
        input_tokens_per_s=positive(inner(seen, "prompt_len"), "rate"),
        output_tokens_per_s=positive(inner(seen, "output_len"), "rate"),
        requests_per_s=per_s,
        waiting=number(inner(seen, "queue_len"), "mean"),
        latency=_latency(seen, None) if completed else {},
    )


def _latency(row: Row, completed: int | None) -> dict[str, Spread]:
    return told(
        {
            m: spread(
                inner(row, name), _NAMES, 1.0, completed if m in ("ttft_s", "e2e_s") else None
            )
            for m, name in _LATENCIES.items()
        }
    )
