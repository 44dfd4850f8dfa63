"""Steps of a trace as rows of a capture: how long each took, and how long its device worked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stallscope.profiler.capture import Step
from stallscope.profiler.trace.device_work import DeviceWork
from stallscope.profiler.trace.intervals import covered_ns, slices
from stallscope.profiler.trace.phases import MarkedStep
from stallscope.profiler.trace.timeline import UNKNOWN, Ints, SmallInts


def step_rows(
    steps: Sequence[MarkedStep], devices: Sequence[DeviceWork], *, rank: int, first_id: int = 0
) -> tuple[Step, ...]:
    """Return one row a step.

    A step whose kernels outlast its mark (the engine launches and goes on) ends with its last
    kernel, and the one behind it begins no sooner than that. `device_ns` is the time in which a
    kernel or copy of the step ran, on the busiest of its devices; `host_ns` is the rest but for the
    time in which a device had work queued. Where nothing on a device belongs to the step both are
    unknown. A mark that does not say how many requests or
    tokens it holds stands for one of each, and what it reads is unknown.
    """
    device_ns, last_ns = _device_time(len(steps), devices)
    starts, ends = _spans(steps, last_ns)
    device_ns = np.minimum(device_ns, ends - starts)
    queued_ns = np.zeros(len(steps), dtype=np.int64)
    for device in devices:
        np.maximum(queued_ns, covered_ns(device.queued, starts, ends), out=queued_ns)
    host_ns = np.maximum(0, ends - starts - device_ns - queued_ns)
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    times = zip(device_ns.tolist(), host_ns.tolist(), strict=True)
    return tuple(
        _row(step, first_id + index, rank, span, None if time[0] == UNKNOWN else time)
        for index, (step, span, time) in enumerate(zip(steps, spans, times, strict=True))
    )


def _spans(steps: Sequence[MarkedStep], last_ns: Ints) -> tuple[Ints, Ints]:
    starts, ends = [], []
    reached_ns = None
    for step, last in zip(steps, last_ns.tolist(), strict=True):
        start_ns, end_ns = step.start_ns, max(step.end_ns, last)
        if reached_ns is not None and start_ns < reached_ns < end_ns:
            start_ns = reached_ns
        reached_ns = end_ns
        starts.append(start_ns)
        ends.append(end_ns)
    return np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)


def _row(
    step: MarkedStep,
    number: int,
    rank: int,
    span: tuple[int, int],
    times: tuple[int, int] | None,
) -> Step:
    mark = step.mark
    prefills, decodes = mark.phase in ("prefill", "mixed"), mark.phase in ("decode", "mixed")
    prefill_requests = (mark.prefill_requests or 1) if prefills else 0
    decode_requests = (mark.decode_requests or 1) if decodes else 0
    return Step(
        id=number,
        rank=rank,
        start_ns=span[0],
        end_ns=span[1],
        device_ns=None if times is None else times[0],
        host_ns=None if times is None else times[1],
        phase=mark.phase,
        warmup=mark.warmup,
        prefill_requests=prefill_requests,
        prefill_tokens=(mark.prefill_tokens or prefill_requests) if prefills else 0,
        decode_requests=decode_requests,
        context_tokens=mark.context_tokens,
        waiting=None,
        running=None,
        kv_used_bytes=None,
        kv_total_bytes=None,
        attention_pairs=mark.attention_pairs,
        logit_rows=prefill_requests + decode_requests if mark.counts else None,
        blocked_by=None,
    )


def _device_time(count: int, devices: Sequence[DeviceWork]) -> tuple[Ints, Ints]:
    """Return for each step the busiest device's time, −1 where it has none, and its last moment."""
    last_ns = np.full(count, UNKNOWN, dtype=np.int64)
    longest = np.full(count, UNKNOWN, dtype=np.int64)
    for device in devices:
        time_ns = np.full(count, UNKNOWN, dtype=np.int64)
        for run in slices(len(device.step)):
            mine = device.step[run] != UNKNOWN
            step = device.step[run][mine]
            last_ns = np.maximum(last_ns, _last(step, device.end_ns[run][mine], count))
            more = np.bincount(step, weights=device.fresh_ns[run][mine], minlength=count)
            seen = np.bincount(step, minlength=count) > 0
            time_ns[seen] = np.maximum(time_ns[seen], 0) + more[seen].astype(np.int64)
        np.maximum(longest, time_ns, out=longest)
    return longest, last_ns


def _last(step: SmallInts, end_ns: Ints, count: int) -> Ints:
    """Return the latest end of each step's rows, −1 where it has none."""
    last_ns = np.full(count, UNKNOWN, dtype=np.int64)
    begins = np.flatnonzero(np.diff(step, prepend=UNKNOWN))
    if not len(begins):
        return last_ns
    # Steps mostly run one after another, so that few stretches remain to be told apart.
    np.maximum.at(last_ns, step[begins], np.maximum.reduceat(end_ns, begins))
    return last_ns
