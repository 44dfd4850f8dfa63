"""Out of memory and other failures in a log, with the stage at which they came."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence

from stallscope.profiler.capture import Event
from stallscope.profiler.server_log import refused, traceback_stage
from stallscope.profiler.server_log.lines import Line
from stallscope.profiler.server_log.sought import sought

# What each stage begins with, by any engine; the latest one seen holds.
_STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "weights",
        (
            "Starting to load model",
            "Load weight begin",
            "Prefetching ",
            "llama_model_load",
            "load_tensors:",
            "checkpoint shards",
        ),
    ),
    ("profile", ("Model loading took", "Loading model weights took")),
    # SGLang takes its pool from what is left, without a pass that measures.
    (
        "kv",
        (
            "Load weight end",
            "Available KV cache memory",
            "Memory profiling takes",
            "llama_kv_cache",
        ),
    ),
    ("warmup", ("KV cache size:", "GPU blocks:", "Memory pool end", "Autotuning process starts")),
    ("graphs", ("Capturing ", "cuda graph begin", "CUDA graph begin")),
    ("warmup", ("Graph capturing finished", "cuda graph end", "CUDA graph end")),
    (
        "serving",
        (
            "Application startup complete",
            "The server is fired up",
            "server is listening",
            "Avg prompt throughput",
            "Decode batch",
        ),
    ),
)
# Said of a start that the text may not show.
_NO_START = "failed to start"
_START = sought(
    r"non-default args:|server_args=ServerArgs|Initializing an? (?:V1 )?LLM engine",
    *("non-default args:", "server_args=ServerArgs", "Initializing a"),
)
# vLLM, before it reads the weights: "Checkpoint size: 92.85 GiB. Available RAM: 15.10 GiB."
_CHECKPOINT = re.compile(
    r"Checkpoint size: (\d{1,6}(?:\.\d{1,4})?) GiB\. Available RAM: (\d{1,6}(?:\.\d{1,4})?) GiB"
)
_SCARCE = (
    0.25  # of the checkpoint's size: the device shares the host's memory, or hardly any is left
)
_KILLED = 0.6  # a log may also have been copied while the server still started
_ARGUMENT = re.compile(r"^\S{1,60}: error: (.{1,300})")
_REASON = re.compile(r"^.{0,200}?Value error, (.{1,400})")
# What follows from a failure elsewhere.
_FOLLOWING = (
    "Engine core initialization failed",
    "initialization failed due to an exception",
    "EngineDead",
    "See stack trace",
    "validation error for",
)
_DEAD = re.compile(r"EngineDeadError|EngineCore encountered a(?:n issue| fatal error)")
_SHUT = ("Shutting down", "Finished server process", "KeyboardInterrupt", "SIGTERM", "SIGINT")
# What a line must hold to be of use here, as plain text.
_FAILURES = (
    *refused.MARKS,
    *("Error", "Exception", "error: ", "error, ", "Interrupt"),
    "EngineCore encountered a",
)
MARKS = (
    *(mark for _, marks in _STAGES for mark in marks),
    *_SHUT,
    *("non-default args:", "ServerArgs", "LLM engine", "Checkpoint size"),
    *_FAILURES,
    *refused.AROUND,
    *traceback_stage.MARKS,
    _NO_START,
)
_WORDS = {
    "": "before anything was loaded",
    "start": "while it started",
    "starting": "while it started",
    "weights": "while it loaded the weights",
    "profile": "while it measured how much memory is left for the KV cache",
    "kv": "while it allocated the KV cache",
    "warmup": "while it warmed up",
    "graphs": "while it captured CUDA graphs",
    "serving": "while it served",
}


def failures(lines: Sequence[Line], broken: str | None = None) -> Iterator[Event]:
    """Yield the first refused allocation as "oom", else what kept the server from serving.

    An "error" says what was raised first and at which stage; a log that ends during the start
    without any failure is said to do so; `broken` is how its file is, where that explains the end.
    """
    stage, reached_ns, has_served, is_dead = "", 0, False, False
    raised: list[tuple[int, str, str, str]] = []
    was_shut, checkpoint, free = False, 0.0, math.inf
    for place, line in enumerate(lines):
        stage, reached_ns = _stage(line, stage), line.t_ns
        has_served = has_served or stage == "serving"
        was_shut = was_shut or any(mark in line.text for mark in _SHUT)
        sizes = _CHECKPOINT.search(line.text)
        if sizes is not None:
            checkpoint = max(checkpoint, float(sizes.group(1)))
            free = min(free, float(sizes.group(2)))
        if line.level in ("INFO", "DEBUG", "WARNING") or not _may_fail(line.text):
            continue
        refusal = refused.refusal(lines, place, stage)
        if refusal is not None:
            yield refusal
            return
        is_dead = is_dead or _DEAD.search(line.text) is not None
        error_seen = _error(line)
        if error_seen is not None:
            raised.append((line.t_ns, *error_seen, stage))
    if has_served and not is_dead:
        return
    is_short = free < _SCARCE * checkpoint
    if raised:
        error = _first(raised, has_served)
        yield error
        if has_served:
            died = f"The server died while it served: {error.data['message']}"
            yield Event(error.t_ns, "check", None, {"sentence": _closed(died), "ends": True})
        if not has_served:
            said = f"The server did not start; it failed {_WORDS[str(error.data['stage'])]}: "
            said += str(error.data["message"])
            yield Event(error.t_ns, "check", None, _final(_closed(said)))
    elif stage and not has_served and not was_shut and broken:
        said = (
            f"The log ends {_WORDS[stage]}, before the server was ready, and holds no error: the "
            f"compressed file is {broken} there, and what came after is not known."
        )
        yield Event(reached_ns, "check", None, _final(said))
    elif stage and not has_served and not was_shut and is_short:
        said = (
            f"The start failed: the log ends {_WORDS[stage]} and holds no error, with "
            f"{_gib(free)} of memory free for a checkpoint of {_gib(checkpoint)}: a process that "
            "the system kills for memory leaves no message (ask dmesg)."
        )
        killed = {**_final(said), "class": "capacity", "most_confidence": _KILLED, "stage": stage}
        yield Event(reached_ns, "check", None, killed)
    elif stage and not has_served and not was_shut:
        said = (
            f"The log ends {_WORDS[stage]}, before the server was ready, and holds no error: it "
            "was cut there, or the process was killed, as a system does that is out of memory."
        )
        yield Event(reached_ns, "check", None, _final(said))


def _may_fail(text: str) -> bool:
    return any(mark in text for mark in _FAILURES)


def _gib(size: float) -> str:
    return f"{size:.1f} GiB"


def _closed(sentence: str) -> str:
    return sentence if sentence.endswith(".") else f"{sentence}."


def _final(sentence: str) -> dict[str, object]:
    """Say what a start that failed is, and that there is no more to judge."""
    return {
        "sentence": sentence,
        "blocks": ["verdict"],
        "class": "undetermined",
        "headline": True,
    }


def _stage(line: Line, stage: str) -> str:
    if _START.search(line.text):
        return "start"
    if _NO_START in line.text and stage in ("", "serving"):
        return "starting"
    for name, marks in reversed(_STAGES):
        if any(mark in line.text for mark in marks):
            return name
    return stage


def _error(line: Line) -> tuple[str, str] | None:
    for kind, pattern in (("ArgumentError", _ARGUMENT), ("ValueError", _REASON)):
        found = pattern.search(line.text)
        if found is not None:
            return kind, found.group(1).strip()
    found = refused.RAISED.search(line.text)
    return (found.group(1), found.group(2).strip()) if found is not None else None


def _first(raised: Sequence[tuple[int, str, str, str]], has_served: bool) -> Event:
    """Return the first error that is none's consequence; after a start only the last counts."""
    own = [r for r in raised if not any(mark in f"{r[1]}: {r[2]}" for mark in _FOLLOWING)]
    pool = own or raised
    t_ns, kind, message, stage = pool[-1] if has_served else pool[0]
    return Event(t_ns, "error", None, {"type": kind, "message": message[:300], "stage": stage})
