"""vLLM's periodic and per-iteration lines, of version 0 and V1.

Periodic: vllm/engine/metrics.py (version 0: Running, Swapped, Pending; every 5 s) and
vllm/v1/metrics/loggers.py (Running, Waiting; every 10 s, none while nothing happens). Per
iteration: with --enable-logging-iteration-details.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stallscope.profiler.capture import Event
from stallscope.profiler.server_log.iterations import Iteration
from stallscope.profiler.server_log.lines import Line
from stallscope.profiler.server_log.readings import Reading
from stallscope.profiler.server_log.repeats import once_a_second
from stallscope.profiler.server_log.sought import NUMBER, sought

_ENGINE = sought(r"\bEngine (\d{1,6}):", "Engine ")
_RUNNING = sought(rf"\bRunning: {NUMBER} reqs", "Running: ")
_WAITING = sought(rf"\b(?:Waiting|Pending): {NUMBER} reqs", "Waiting: ", "Pending: ")
_SWAPPED = sought(rf"\bSwapped: {NUMBER} reqs", "Swapped: ")
_PROMPT = sought(rf"Avg prompt throughput: {NUMBER} tokens/s", "Avg prompt")
_OUTPUT = sought(rf"Avg generation throughput: {NUMBER} tokens/s", "Avg generation")
_KV = sought(rf"\b\w{{2,8}} KV cache usage: {NUMBER}%", " KV cache usage: ", before=8)
_HITS = sought(
    rf"(?<!External )Prefix cache hit rate: (?:GPU: )?{NUMBER}%", "Prefix cache hit rate: "
)
_EXTERNAL = sought(rf"External prefix cache hit rate: {NUMBER}%", "External prefix")
_ITERATION = sought(
    rf"Iteration\((\d{{1,12}})\): {NUMBER} context requests, {NUMBER} context tokens, "
    rf"{NUMBER} generation requests, {NUMBER} generation tokens, "
    rf"iteration elapsed time: {NUMBER} ms",
    "Iteration(",
)
_PREEMPTED = sought(
    r"is preempted by PreemptionMode\.(\w+) mode|preempted by \w+ mode", "preempted by ", before=3
)
_CUMULATIVE = re.compile(r"total_num_cumulative_preemption=(\d{1,12})")
# A whole line of V1 behind its head, as nearly all are; others are read field by field.
_WHOLE = re.compile(
    rf"Engine (\d{{1,6}}): Avg prompt throughput: {NUMBER} tokens/s, Avg generation throughput: "
    rf"{NUMBER} tokens/s, Running: {NUMBER} reqs, Waiting: {NUMBER} reqs, GPU KV cache usage: "
    rf"{NUMBER}%, Prefix cache hit rate: {NUMBER}%"
)
_HEAD = 120  # at most, before a line's own text
PERIOD_S = {"0": 5.0, "1": 10.0}


def readings(lines: Sequence[Line]) -> Iterator[Reading]:
    """Yield the periodic lines' gauges and rates; swapped-out requests wait."""
    for line in once_a_second(lines):
        whole = _WHOLE.fullmatch(line.text, max(0, line.text.find("Engine ", 0, _HEAD)))
        found = _by_field(line) if whole is None else _of_whole(line.t_ns, whole)
        if found is not None:
            yield found


def _of_whole(t_ns: int, found: re.Match[str]) -> Reading:
    engine, *numbers = found.groups()
    prompts, outputs, running, waiting, used, hits = map(float, numbers)
    share = used / 100 if used <= 100 else None
    return Reading(
        t_ns, str(int(engine)), waiting, running, share, prompts, outputs, hits / 100, None
    )


def _by_field(line: Line) -> Reading | None:
    running, waiting = _RUNNING.number(line.text), _WAITING.number(line.text)
    if running is None or waiting is None:
        return None
    used, engine = _KV.number(line.text), _ENGINE.search(line.text)
    return Reading(
        line.t_ns,
        str(int(engine.group(1))) if engine else "0",
        waiting + (_SWAPPED.number(line.text) or 0.0),
        running,
        used / 100 if used is not None and used <= 100 else None,
        _PROMPT.number(line.text),
        _OUTPUT.number(line.text),
        _percent(_HITS.number(line.text)),
        _percent(_EXTERNAL.number(line.text)),
    )


def is_version_0(lines: Sequence[Line]) -> bool:
    """Tell version 0's lines, which come every five seconds, from V1's."""
    return any("Pending: " in line.text for line in lines)


def iterations(lines: Sequence[Line]) -> Iterator[Iteration]:
    """Yield the passes that were logged one by one."""
    for line in lines:
        found = _ITERATION.search(line.text)
        if found is None:
            continue
        engine = _ENGINE.search(line.text)
        contexts, tokens, decodes, _, elapsed_ms = (float(x) for x in found.groups()[1:])
        yield Iteration(
            line.t_ns,
            int(engine.group(1)) if engine else 0,
            round(elapsed_ms * 1e6),
            int(contexts),
            int(tokens),
            int(decodes),
        )


def preemptions(lines: Sequence[Line]) -> Iterator[Event]:
    """Yield version 0's warnings of preemption; it writes one in fifty, with the sum so far."""
    for line in once_a_second(lines):
        if _PREEMPTED.search(line.text) is None:
            continue
        total = _CUMULATIVE.search(line.text)
        data = {"total": int(total.group(1))} if total else {}
        yield Event(line.t_ns, "preempt", None, {"engine": "0", **data})


def _percent(value: float | None) -> float | None:
    return None if value is None else value / 100
