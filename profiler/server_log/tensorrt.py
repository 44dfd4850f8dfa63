"""TensorRT-LLM's iteration logs: the PyTorch backend's lines, and the JSON of Triton's backend.

Lines: tensorrt_llm/_torch/pyexecutor/py_executor.py with print_iter_log ("iter = 198, … states =
{…}"). JSON: the batch manager's statistics, one object a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from stallscope.profiler.server_log.iterations import Iteration
from stallscope.profiler.server_log.lines import Line
from stallscope.profiler.server_log.readings import Reading
from stallscope.profiler.server_log.sought import sought

_N = r"(\d{1,12}(?:\.\d{1,20})?)"
_ITER = sought(r"\biter = \d{1,12}, global_rank = (\d{1,6})", "iter = ")
_ELAPSED = re.compile(rf"\b(?:elapsed_time = {_N}s|host_step_time = {_N}ms)")
_SCHEDULED = re.compile(r"num_scheduled_requests(?: =|:) (\d{1,9})")
_STATE = re.compile(r"'num_(ctx_requests|ctx_tokens|generation_tokens)': (\d{1,12})")
_FIELD = re.compile(rf'"([A-Z][\w ]{{1,60}})":{_N}')
_ACTIVE = ("Active Request Count", "Scheduled Requests")
_BLOCKS = ("Used KV cache blocks", "Max KV cache blocks")
_CAP = sought(
    r'"Max Request Count":(\d{1,9})|\bmax_num_requests=(\d{1,9})',
    '"Max Request Count":',
    "max_num_requests=",
)


def iterations(lines: Sequence[Line]) -> Iterator[Iteration]:
    """Yield passes of rank 0: with speculative decoding only the scheduled requests are exact."""
    for line in lines:
        found = _ITER.search(line.text)
        if found is None or int(found.group(1)):
            continue
        elapsed = _ELAPSED.search(line.text)
        states = {name: int(count) for name, count in _STATE.findall(line.text)}
        if elapsed is None or len(states) < 3:
            continue
        seconds, milliseconds = elapsed.groups()
        scheduled = _SCHEDULED.search(line.text)
        contexts = states["ctx_requests"]
        decodes = states["generation_tokens"]
        if scheduled is not None:
            decodes = min(decodes, max(0, int(scheduled.group(1)) - contexts))
        elapsed_s = float(seconds) if seconds else float(milliseconds) / 1e3
        yield Iteration(
            line.t_ns, 0, round(elapsed_s * 1e9), contexts, states["ctx_tokens"], decodes
        )


def readings(lines: Sequence[Line]) -> Iterator[Reading]:
    """Yield the JSON's requests and blocks: those that are active and not scheduled wait."""
    for line in lines:
        if _ACTIVE[0] not in line.text:
            continue
        found = {name: float(value) for name, value in _FIELD.findall(line.text)}
        if not all(name in found for name in _ACTIVE):
            continue
        active, scheduled = (found[name] for name in _ACTIVE)
        used, most = (found.get(name) for name in _BLOCKS)
        yield Reading(
            line.t_ns,
            "0",
            max(0.0, active - scheduled),
            scheduled,
            used / most if used is not None and most and used <= most else None,
        )


def sequence_cap(lines: Sequence[Line]) -> int | None:
    """Return the cap on requests that the log states."""
    for line in lines:
        found = _CAP.search(line.text)
        if found is not None:
            return int(found.group(1) or found.group(2)) or None
    return None
