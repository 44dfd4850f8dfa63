"""Per-request arrays of `--save-detailed` and `--output-details`: exact, and placed in time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from stallscope.profiler.benchmark.figures import Row, number
from stallscope.profiler.capture import Request
from stallscope.profiler.trial import Spread
from stallscope.profiler.wall_clock import WallClock

_NS = 1_000_000_000
_WRITTEN_WITHIN_NS = 5 * _NS
_LONGEST_S = 1e8  # three years: what is longer is no time of a request


def start_unix_ns(row: Row) -> int | None:
    """Return when the benchmark began, where the row says it in Unix time."""
    found = number(row, "benchmark_start_time_unix")
    return round(found * _NS) if found and found < 1e10 else None


def start_by_date(row: Row) -> WallClock | None:
    """Return when it began by `date`: local time, in whole seconds, taken as the result is written.

    Before that the outputs are counted, which takes a while.
    """
    said, duration = row.get("date"), number(row, "duration")
    if not isinstance(said, str) or duration is None or not duration < _LONGEST_S:
        return None
    try:
        ended = datetime.strptime(said, "%Y%m%d-%H%M%S").replace(tzinfo=UTC)
    except ValueError:
        return None
    zero_ns = round(ended.timestamp()) * _NS - round(duration * _NS)
    return WallClock(zero_ns, has_zone=False, error_ns=_WRITTEN_WITHIN_NS)


def requests_of(row: Row) -> tuple[Request, ...]:
    """Return the requests of a row whose arrays say when each was sent; else none.

    Times are the client's, from the first one sent. It does not see an admission: that stays
    unknown.
    """
    starts = _numbers(row.get("start_times"))
    served = _served(row)
    if starts is None or served is None or len(starts) != len(served):
        return ()
    first = min(starts, default=0.0)
    if max(starts, default=0.0) - first > _LONGEST_S:
        return ()
    inputs = _numbers(row.get("input_lens"), like=starts) or [0.0] * len(starts)
    outputs = _numbers(row.get("output_lens"), like=starts) or [0.0] * len(starts)
    rows = sorted(zip(starts, served, inputs, outputs, strict=True), key=lambda r: r[0])
    return tuple(
        _request(i, start - first, times, round(read), round(written))
        for i, (start, times, read, written) in enumerate(rows)
    )


def array_spreads(row: Row) -> dict[str, Spread]:
    """Summarise what the arrays hold of requests that came back; empty where they lack."""
    served = _served(row)
    outputs = _numbers(row.get("output_lens"))
    if served is None or outputs is None or len(outputs) != len(served):
        return {}
    done = [(t, n) for t, n in zip(served, outputs, strict=True) if t is not None]
    gaps = [g for times, _ in done for g in times[2]]
    tpot = [(end - first) / (n - 1) for (first, end, _), n in done if n > 1 and end > first]
    values = {
        "ttft_s": [first for (first, _, _), _ in done],
        "tpot_s": tpot,
        "itl_s": gaps,
        "e2e_s": [end for (_, end, _), _ in done],
    }
    return {name: summarised(found) for name, found in values.items() if found}


def summarised(values: Sequence[float]) -> Spread:
    """Summarise; percentiles interpolate linearly between order statistics."""
    ordered = sorted(values)
    p50, p90, p99 = (_percentile(ordered, q) for q in (0.5, 0.9, 0.99))
    mean = math.fsum(ordered) / len(ordered)
    return Spread(mean, p50, p90, p99, len(ordered), ordered[0], ordered[-1])


def _percentile(ordered: Sequence[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)


Times = tuple[float, float, list[float]]  # first token and end after sending, gaps between chunks


def _served(row: Row) -> list[Times | None] | None:
    """Return each request's times, None for one that failed; None where the arrays do not fit."""
    ttfts, itls = _numbers(row.get("ttfts")), row.get("itls")
    if ttfts is None or not isinstance(itls, list) or len(itls) != len(ttfts):
        return None
    ends = _numbers(row.get("latencies"), like=ttfts)
    errors = row.get("errors")
    failed = errors if isinstance(errors, list) and len(errors) == len(ttfts) else [""] * len(itls)
    found: list[Times | None] = []
    for i, ttft in enumerate(ttfts):
        gaps = _numbers(itls[i])
        if gaps is None:
            return None
        end = max(ends[i] if ends else 0.0, ttft + math.fsum(gaps))
        found.append((ttft, end, gaps) if ttft > 0 and not failed[i] and end < _LONGEST_S else None)
    return found


def _request(
    id: int, start_s: float, times: Times | None, input_tokens: int, output_tokens: int
) -> Request:
    sent = round(start_s * _NS)
    first = end = None
    if times is not None:
        first, end = sent + round(times[0] * _NS), sent + round(times[1] * _NS)
    status = "failed" if times is None else "finished"
    return Request(
        id, sent, None, first, end, input_tokens, None, output_tokens, None, None, status
    )


def _numbers(value: object, like: Sequence[float] | None = None) -> list[float] | None:
    """Return a list of finite numbers of 0 or more (as many as in `like`), else None."""
    if not isinstance(value, list) or (like is not None and len(value) != len(like)):
        return None
    for item in value:
        if isinstance(item, bool) or not isinstance(item, int | float) or not 0 <= item < 1e15:
            return None
    return [float(item) for item in value]
