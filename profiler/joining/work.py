"""When a capture saw work: from requests, steps, gauges or device counters, the exactest there."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal

from stallscope.profiler.capture import SAMPLE_WINDOW_NS, Capture, DeviceSample
from stallscope.profiler.joining.client import is_of_client, stated_span, work_of_client
from stallscope.profiler.joining.edges import Between, Stretch, Work, exact
from stallscope.profiler.joining.flight import Flight, of_gauges, of_requests, read_at_end

_S = 1_000_000_000
# What tells how long a device was busy, best first, and up to which value it idles: a desktop's own
# drawing keeps NVML's figure at a few per cent.
_BUSY = ("dcgm_gr_engine_active", "gpu_busy", "nvml_gpu_util", "dcgm_sm_active")
_IDLE = 0.05
_MOVES = ("input_tokens_total", "output_tokens_total", "finished_total")
_SWING = 1.5  # times its least a device's power must reach to tell work from idling

# What a value is read at: the end of the time it speaks for, its beginning, or a moment between.
Reading = Literal["period", "event", "sample"]


def work_of(capture: Capture) -> Work | None:
    """Return when work was seen; None where nothing in the capture has a time."""
    span = span_of(capture)
    if span is None:
        return None
    if is_of_client(capture):
        return work_of_client(capture, span)
    spans = [(r.arrival_ns, r.end_ns) for r in capture.requests if r.end_ns is not None]
    if spans:
        return Work(span, 0, tuple(exact(spans, 0)), of_requests(capture.requests), is_whole=True)
    slack_ns = _S if _is_log(capture) else 0  # stamps are whole seconds
    if _is_log(capture):
        span = min(span[0], 0), span[1]  # it began with its first line, whatever that said
    flight = of_gauges(capture.engine_samples)
    reading = _reading(capture)
    points = _busy_looks(capture, flight, reading)
    read = read_at_end(flight) if reading == "period" else flight
    steps = [(s.start_ns, s.end_ns) for s in capture.steps if not s.warmup]
    if steps:
        return Work(span, slack_ns, tuple(exact(steps, slack_ns)), read, slack_ns)
    if flight:
        # A counter that rose tells of work since the look before.
        lag_ns = _interval(points) if reading == "sample" else 0
        found = stretches(points, reading, slack_ns=slack_ns, lag_ns=lag_ns)
        return Work(span, _interval(points), tuple(_begun(found, capture, points)), read, slack_ns)
    return _of_devices(capture.device_samples, span)


def span_of(capture: Capture) -> tuple[int, int] | None:
    """Return the first and the last time of a capture's rows; notes have none of their own.

    Of a benchmark without rows, it is the duration that the results state.
    """
    times = [s.t_ns for s in capture.engine_samples] + [s.t_ns for s in capture.device_samples]
    for step in capture.steps:
        times += (step.start_ns, step.end_ns)
    for request in capture.requests:
        times += (request.arrival_ns, *([] if request.end_ns is None else [request.end_ns]))
    if is_of_client(capture) and not times:
        return stated_span(capture)
    return (min(times), max(times)) if times else None


def stretches(
    points: Sequence[tuple[int, bool]], reading: Reading, *, slack_ns: int = 0, lag_ns: int = 0
) -> Iterator[Stretch]:
    """Yield the stretches in which a value that is looked at now and then said "busy".

    `slack_ns` is how much later than stated a look may have been, `lag_ns` how far back it speaks.
    """
    begin: Between | None = None
    is_busy = False
    for index, (t_ns, busy) in enumerate(points):
        before_ns = points[index - 1][0] if index else t_ns
        after_ns = points[min(index + 1, len(points) - 1)][0]
        if busy and not is_busy:
            first_ns, last_ns = {
                "period": (t_ns, after_ns),
                "event": (t_ns - slack_ns, t_ns),
                "sample": (before_ns - lag_ns, t_ns),
            }[reading]
            begin = Between(first_ns, last_ns + slack_ns) if index else None
        if is_busy and not busy:
            yield Stretch(begin, Between(before_ns - lag_ns, t_ns + slack_ns))
        is_busy = busy
    if is_busy:
        yield Stretch(begin, None)


def _begun(
    found: Iterable[Stretch], capture: Capture, points: Sequence[tuple[int, bool]]
) -> Iterator[Stretch]:
    """Give a log's first stretch its begin where the log began earlier, and wrote nothing of it."""
    for index, stretch in enumerate(found):
        is_new = stretch.begin is None and index == 0 and _is_log(capture)
        if is_new and points[0][0] > 0 and len(points) > 1:
            stretch = stretch._replace(begin=Between(points[0][0], points[1][0] + _S))
        yield stretch


def _of_devices(samples: Sequence[DeviceSample], span: tuple[int, int]) -> Work:
    name = next((n for n in _BUSY if any(s.name == n for s in samples)), "power_mw")
    rows = sorted((s for s in samples if s.name == name), key=lambda s: s.t_ns)
    by_device: dict[str, list[tuple[int, float]]] = {}
    for sample in rows:
        by_device.setdefault(sample.device, []).append((sample.t_ns, sample.value))
    tracks = [_busy(points, name) for points in by_device.values()]
    # One that never idles works for somebody else, or all the time: it shows no begin and no end.
    telling = [t for t in tracks if any(busy for _, busy in t) and not all(b for _, b in t)]
    points = _any_of(telling)
    slack_ns = _S if points and all(t % _S == 0 for t, _ in points) else 0
    found = stretches(points, "sample", slack_ns=slack_ns, lag_ns=SAMPLE_WINDOW_NS)
    return Work(span, _interval(points), tuple(found))


def _busy(points: Sequence[tuple[int, float]], name: str) -> list[tuple[int, bool]]:
    line = _IDLE
    if name == "power_mw":
        least, most = min(v for _, v in points), max(v for _, v in points)
        line = (least + most) / 2 if most >= _SWING * least else most
    return [(t_ns, value > line) for t_ns, value in points]


def _busy_looks(capture: Capture, flight: Flight, reading: Reading) -> list[tuple[int, bool]]:
    """Return at which looks requests were in flight, or had been since the look before."""
    rose: set[int] = set()
    last: dict[tuple[str, str], float] = {}
    counters = (s for s in capture.engine_samples if s.name in _MOVES)
    for sample in counters if reading == "sample" else ():
        key = sample.engine, sample.name
        if sample.value > last.get(key, sample.value):
            rose.add(sample.t_ns)
        last[key] = sample.value
    return [(t_ns, value > 0 or t_ns in rose) for t_ns, value in flight]


def _any_of(tracks: Sequence[Sequence[tuple[int, bool]]]) -> list[tuple[int, bool]]:
    last: dict[int, bool] = {}
    found: dict[int, bool] = {}
    rows = sorted((t_ns, index, busy) for index, track in enumerate(tracks) for t_ns, busy in track)
    for t_ns, index, busy in rows:
        last[index] = busy
        found[t_ns] = any(last.values())
    return list(found.items())


def _interval(points: Sequence[tuple[int, bool]]) -> int:
    gaps = [b - a for (a, _), (b, _) in pairwise(points)]
    return int(statistics.median(gaps)) if gaps else 0


def _is_log(capture: Capture) -> bool:
    return "server_log" in capture.meta


def _reading(capture: Capture) -> Reading:
    """Tell what a gauge speaks for: vLLM's and TensorRT-LLM's lines for the period they close."""
    if not _is_log(capture):
        return "sample"
    return "event" if capture.subject.engine == "sglang" else "period"
