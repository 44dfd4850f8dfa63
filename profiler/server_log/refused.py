"""One refused allocation in a log: at which stage, for how much, and for which buffer."""

from __future__ import annotations

import re
from collections.abc import Sequence

from stallscope.profiler.capture import Event
from stallscope.profiler.server_log.lines import Line
from stallscope.profiler.server_log.traceback_stage import stage_of_traceback

_REFUSED = re.compile(
    r"OutOfMemoryError|(?:CUDA|HIP|XPU|NPU) (?:error: )?out of memory|cudaMalloc failed: out of mem"
    r"|CUBLAS_STATUS_ALLOC_FAILED|std::bad_alloc|cudaErrorMemoryAllocation"
    r"|RESULT_ERROR_OUT_OF_(?:DEVICE|HOST)_MEMORY|failed to allocate \w{1,20} buffer"
    r"|Out of memory: Killed process|\bMemoryError\b|\bOOMKilled\b"
)
# What kills a program for the host's memory says so elsewhere than in its log: the kernel's ring,
# and the state of a pod's container.
_KILLED = re.compile(r"Out of memory: Killed process \d+|\b[Rr]eason\"?:\s{1,20}\"?OOMKilled\b")
# Refusals of the engine itself, before an allocator is asked, with the stage they name.
_TOLD = (
    ("kv_sizing", re.compile(r"No available memory for the cache blocks")),
    (
        "kv_sizing",
        re.compile(r"larger than the (?:available KV cache memory|maximum number of tok)"),
    ),
    ("kv_sizing", re.compile(r"Not enough memory\. Please try to increase --mem-fraction-static")),
    ("start", re.compile(r"Free memory on device .{0,80}(?:less than desired|is less than)")),
    ("warmup", re.compile(r"out of memory occurred when warming up")),
    ("graphs", re.compile(r"Capture cuda graph failed.{0,80}out of memory", re.I)),
)
_UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
_SIZE = r"(\d{1,9}(?:\.\d{1,4})?) (KiB|MiB|GiB)"
# What torch says beside: "… of which 212.38 MiB is free", "914 MiB is reserved by PyTorch but un…"
_SIZES = {
    "bytes": re.compile(rf"[Tt]ried to allocate {_SIZE}"),
    "total_bytes": re.compile(rf"total capacity of {_SIZE}|; {_SIZE} total capacity;"),
    "free_bytes": re.compile(rf"\b{_SIZE} is free\b|; {_SIZE} free;"),
    "unused_bytes": re.compile(rf"\b{_SIZE} is reserved by PyTorch but unallocated"),
}
# What vLLM says of the room for its cache: V1 in GiB, with the length that fits; 0 in tokens.
_KV_NEEDED = re.compile(r"(\d{1,6}(?:\.\d{1,4})?) GiB KV cache is needed")
_KV_LEFT = re.compile(r"available KV cache memory \((-?\d{1,6}(?:\.\d{1,4})?) GiB\)")
_FITTING = re.compile(
    r"estimated maximum model length is (\d{1,9})"
    r"|maximum number of tokens that can be stored in KV cache \((\d{1,9})\)"
)
RAISED = re.compile(
    r"(?:^|[\]>] |\) )\s*((?:[A-Za-z_]\w{0,60}\.){0,8}[A-Z]\w{0,60}(?:Error|Exception|Interrupt))"
    r": (.{1,600})"
)
# A traceback through the sampler: what it asks for has a row for each sequence, and for each of
# its draft tokens, over the whole vocabulary.
_LOGITS = re.compile(r"\blogits\b|\blogprobs\b|_?sampler(?:_run|\.py)?\b")
_ROWS = re.compile(r"warming up sampler with (\d{1,7}) dummy requests")
_NEAR_NS = 5_000_000_000
_NEAR = 60  # lines: a traceback's are short, and stand together
_FAR = 2000  # letters of a line: what a program echoes of its requests has no end
MARKS = (
    *("ut of mem", "OUT_OF_", "ALLOC_FAILED", "bad_alloc", "MemoryAllocation", "Free memory on"),
    *("failed to allocate", "cache blocks", "larger than the ", "Not enough memory"),
    *("apture cuda graph failed", "OOMKilled"),
)
AROUND = ("logits", "logprobs", "sampler")  # what tells the buffer, in lines beside


def is_raised(text: str) -> bool:
    """Tell whether an allocation was refused here, or a program killed for it, whatever ran."""
    if _KILLED.search(text, 0, _FAR):
        return True
    if "rror: " not in text[:_FAR]:
        return False
    raised = RAISED.search(text, 0, _FAR)
    patterns = (_REFUSED, *(pattern for _, pattern in _TOLD))
    return raised is not None and any(p.search(raised.group()) for p in patterns)


def refusal(lines: Sequence[Line], place: int, stage: str) -> Event | None:
    """Return the refusal that a line tells; what stands around it says for which buffer."""
    line = lines[place]
    told = next((name for name, pattern in _TOLD if pattern.search(line.text)), None)
    if told is None and not _REFUSED.search(line.text):
        return None
    data: dict[str, object] = {"message": _message(line)}
    at = told or _at(lines, place, stage)
    if at:
        data["stage"] = at
    if _KILLED.search(line.text):
        return Event(line.t_ns, "oom", None, {**data, "buffer": "host"})
    for name, pattern in _SIZES.items():
        found = pattern.search(line.text)
        if found is not None:
            size, unit = (g for g in found.groups() if g is not None)
            data[name] = round(float(size) * _UNITS[unit])
    return Event(line.t_ns, "oom", None, data | _kv_room(line.text) | _buffer(lines, place))


def _kv_room(text: str) -> dict[str, object]:
    """Read how much KV cache one request needed, how much there was, and which length fits."""
    room: dict[str, object] = {}
    for name, pattern in (("kv_needed_bytes", _KV_NEEDED), ("kv_left_bytes", _KV_LEFT)):
        found = pattern.search(text)
        if found is not None:
            room[name] = round(float(found[1]) * _UNITS["GiB"])
    fitting = _FITTING.search(text)
    if fitting is not None:
        room["fitting_tokens"] = int(fitting[1] or fitting[2])
    return room


def _at(lines: Sequence[Line], place: int, stage: str) -> str:
    """Name the stage: a frame of a start tells it, one of serving only where nothing else does.

    The line that a start begins with tells of none of its stages.
    """
    by_frame = stage_of_traceback(lines, place)
    if by_frame is None or (by_frame == "serving" and stage):
        return "starting" if stage == "start" else stage
    return by_frame


def _buffer(lines: Sequence[Line], place: int) -> dict[str, object]:
    """Name the sampler's logits where the traceback, or the error raised after it, goes through
    them."""
    at_ns = lines[place].t_ns
    around = [
        line.text
        for line in lines[max(0, place - _NEAR) : place + _NEAR]
        if abs(line.t_ns - at_ns) <= _NEAR_NS and line.level not in ("INFO", "DEBUG", "WARNING")
    ]
    rows = next((found for text in around if (found := _ROWS.search(text))), None)
    if rows is not None:
        return {"buffer": "logits", "rows": int(rows.group(1))}
    return {"buffer": "logits"} if any(_LOGITS.search(text) for text in around) else {}


def _message(line: Line) -> str:
    raised = RAISED.search(line.text)
    return (raised.group(2) if raised else line.text)[:300].strip()
