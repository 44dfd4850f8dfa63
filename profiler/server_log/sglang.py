"""SGLang's lines for prefill batches (each one) and decode batches (one in forty).

Written by the scheduler's metrics mixin: "Prefill batch. #new-seq: …" before version 0.5.4,
"Prefill batch, …" since; "new fill batch. #seq: …" in version 0.1. Hybrid models name the use of
each of their pools.
"""

from __future__ import annotations

import re
import statistics
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from stallscope.profiler.capture import EngineSample, Event
from stallscope.profiler.server_log.lines import Line
from stallscope.profiler.server_log.readings import spread
from stallscope.profiler.server_log.sglang_ranks import Writer, of_first_writers, writer_of
from stallscope.profiler.server_log.sought import NUMBER, sought

_S = 1_000_000_000
_RUNNING = sought(rf"#running[-_]req: {NUMBER}", "#running")
_QUEUE = sought(rf"#(?:queue-req|remaining_req): {NUMBER}", "#queue-req: ", "#remaining_req: ")
_USAGE = re.compile(rf"\b(?:token|mamba) usage: {NUMBER}")
_NEW_SEQ = sought(rf"#(?:new-seq|seq): {NUMBER}", "#new-seq: ", "#seq: ")
_NEW_TOKEN = sought(rf"#new[-_]token: {NUMBER}", "#new")
_RATE = sought(rf"gen throughput \(token/s\): {NUMBER}", "gen throughput")
_READY = "The server is fired up"
_RETRACTED = sought(r"#retracted_reqs: (\d{1,9})", "#retracted")
_DECODE_GAP_S = 5.0  # between decode lines, where there are none to tell


class Batch(NamedTuple):
    """One line: gauges once the batch runs; `tokens` prefilled, or None for a decode line.

    `begun` requests are in a batch of prompts.
    """

    t_ns: int
    engine: str
    waiting: float
    running: float
    was_running: float
    kv_used: float | None
    tokens: float | None
    output_rate: float | None
    begun: float = 0.0


def batches(lines: Sequence[Line]) -> list[Batch]:
    """Return the batches of each data-parallel rank; those of the server's own warm-up left out."""
    found: list[tuple[Writer, Batch]] = []
    for line in lines:
        if _READY in line.text:
            found.clear()
        batch = _batch(line)
        if batch is not None:
            found.append((writer_of(line.text), batch))
    return of_first_writers(found)


def _batch(line: Line) -> Batch | None:
    running, queue = _RUNNING.number(line.text), _QUEUE.number(line.text)
    if running is None or queue is None:
        return None
    new, tokens = _NEW_SEQ.number(line.text), _NEW_TOKEN.number(line.text)
    is_prefill = new is not None and tokens is not None
    used = [float(x) for x in _USAGE.findall(line.text)]
    return Batch(
        line.t_ns,
        writer_of(line.text).engine,
        queue,
        running + ((new or 0.0) if is_prefill else 0.0),
        running,
        max(used) if used and max(used) <= 1 else None,
        tokens if is_prefill else None,
        _RATE.number(line.text),
        (new or 0.0) if is_prefill else 0.0,
    )


def samples(found: Sequence[Batch]) -> list[EngineSample]:
    """Return waiting, running and KV use by batch, and counters of tokens and batches of prompts.

    A pool counts as used as the fullest one is. Nothing is logged while nothing runs: where a
    prompt then finds nobody running, the engine was empty since the next decode line was due.
    Lines of prefill alone count no output.
    """
    engines = sorted({b.engine for b in found})
    return [s for e in engines for s in _samples([b for b in found if b.engine == e])]


def _samples(rows: Sequence[Batch]) -> Iterator[EngineSample]:
    times = spread([b.t_ns for b in rows])
    due_ns = _decode_gap(rows)
    taken, made, prefills, begun, decoded_ns, before_ns = 0.0, 0.0, 0.0, 0.0, None, None
    tells_output = any(b.output_rate is not None for b in rows)
    for batch, t_ns in zip(rows, times, strict=True):
        if batch.tokens is not None and before_ns is not None and not batch.was_running:
            idle_ns = before_ns + due_ns
            if idle_ns < t_ns:
                yield EngineSample(idle_ns, batch.engine, "waiting", 0.0)
                yield EngineSample(idle_ns, batch.engine, "running", 0.0)
        if batch.tokens is None:
            if decoded_ns is not None:
                made += (batch.output_rate or 0.0) * (t_ns - decoded_ns) / _S
            decoded_ns = t_ns
        taken += batch.tokens or 0.0
        prefills += batch.tokens is not None
        begun += batch.begun
        named = {
            "waiting": batch.waiting,
            "running": batch.running,
            "kv_used_fraction": batch.kv_used,
            "input_tokens_total": taken,
            "output_tokens_total": made if tells_output else None,
            "prefill_batches_total": prefills,
            "prefill_requests_total": begun,
        }
        for name, value in named.items():
            if value is not None:
                yield EngineSample(t_ns, batch.engine, name, value)
        before_ns = t_ns


def _decode_gap(rows: Sequence[Batch]) -> int:
    gaps = [b.t_ns - a.t_ns for a, b in pairwise(rows) if a.tokens is None and b.tokens is None]
    return max(_S, round(statistics.median(gaps))) if gaps else round(_DECODE_GAP_S * _S)


def preemptions(lines: Sequence[Line]) -> Iterator[Event]:
    """Yield retractions: SGLang's word for running requests put back for want of KV room.

    Every process of an engine writes the line: those of its first one count.
    """
    found = [
        (writer_of(line.text), (line.t_ns, int(told.group(1))))
        for line in lines
        if (told := _RETRACTED.search(line.text)) is not None and int(told.group(1))
    ]
    for engine, (t_ns, count) in of_first_writers((w, (w.engine, row)) for w, row in found):
        yield Event(t_ns, "preempt", None, {"engine": engine, "count": count})
