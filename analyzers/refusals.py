"""Refused allocations: at which stage, for how much, and for what."""

from __future__ import annotations

from stallscope.analyzers.event_fields import number, text, whole_events
from stallscope.profiler.capture import Capture, Event
from stallscope.profiler.spec import ModelSpec
from stallscope.profiler.wording import counted

_STAGES = {
    "weights": "loading the weights",
    "kv": "allocating the KV cache",
    "step": "running a step",
    "start": "starting up",
    "starting": "starting up, at a stage that the log does not tell",
    "profile": "measuring how much memory is left for the KV cache",
    "kv_sizing": "sizing the KV cache",
    "warmup": "warming up",
    "graphs": "capturing CUDA graphs",
    "serving": "serving requests",
    "probe": "probing the device",
}
# In the others something ran; in these the start failed, and there is no run to limit.
_OF_A_START = frozenset(_STAGES) - {"step", "serving", "probe"}
# torch on a CPU raises a plain RuntimeError with the first of these words.
_REFUSALS = ("can't allocate memory", "out of memory")
# What an engine says of the room for its KV cache, by the field of the event.
ROOM_MEASURES = {
    "kv_needed_bytes": "kv_bytes_needed",
    "kv_left_bytes": "kv_bytes_left",
    "fitting_tokens": "max_model_len_fitting",
}
_LOGIT_BYTES = 4  # engines sample in fp32


def refused_allocations(capture: Capture) -> tuple[Event, ...]:
    """Return the events of refused allocations: the runner's own, else exceptions that say so."""
    noted = tuple(e for e in capture.events if e.kind == "oom")
    return noted or tuple(e for e in capture.events if e.kind == "error" and _is_refusal(e))


def memory_failure(capture: Capture) -> Event | None:
    """Return the first refused allocation, else the check that a start failed for memory."""
    starts = (e for e in whole_events(capture, "check") if e.data.get("class") == "capacity")
    failed = (e for e in starts if text(e, "stage") is not None)
    return next(iter(refused_allocations(capture)), next(failed, None))


def refused_at(event: Event) -> str | None:
    """Name the stage: the runner's own, or a step where a recorded one raised."""
    stage = event.data.get("stage", "step" if "step" in event.data else None)
    return None if stage is None else str(stage)


def is_of_a_start(event: Event) -> bool:
    """Tell whether it came before anything could run."""
    return refused_at(event) in _OF_A_START


def buffer_of(event: Event) -> str | None:
    """Name what the memory was asked for, where a traceback tells: "logits"; "host": its own."""
    return text(event, "buffer")


def refusal_text(event: Event, model: ModelSpec | None) -> str:
    """Say when it came, what for, and how much was asked and free."""
    stage = refused_at(event)
    words = f" while {_STAGES.get(stage, f'in stage {stage}')}" if stage is not None else ""
    asked, free = number(event, "bytes"), number(event, "free_bytes")
    needed, kept = number(event, "kv_needed_bytes"), number(event, "kv_left_bytes")
    if needed is not None and kept is not None and kept > 0:
        return f"{words} ({_gib(needed)} needed for one request, {_gib(kept)} left)"
    if buffer_of(event) == "host":
        return f"{words} (the system killed the process for the host's memory, not the device's)"
    if buffer_of(event) == "logits":
        words += f", in {_logits_text(event, model, asked)}"
    if not asked:
        return words
    left = "" if free is None else f", {_size(int(free))} free"
    return f"{words} ({_size(int(asked))} asked for{left})"


def _logits_text(event: Event, model: ModelSpec | None, asked: float | None) -> str:
    """Say how many rows of logits that was: as the engine counts them, else as fp32 ones fit."""
    rows = number(event, "rows")
    if rows:
        return f"the sampler's logits of {counted(rows, 'sequence')}"
    if asked and model is not None:
        fitting = asked / (model.vocab_size * _LOGIT_BYTES)
        return (
            f"the sampler's logits: as much as {fitting:,.0f} rows of fp32 over a vocabulary of "
            f"{model.vocab_size:,}"
        )
    return "the sampler's logits"


def pieces_note(capture: Capture) -> tuple[str, ...]:
    """Say where the allocator held enough in pieces: a second factor, not what was short."""
    event = next(iter(refused_allocations(capture)), None)
    if event is None:
        return ()
    asked, free, unused = (number(event, n) for n in ("bytes", "free_bytes", "unused_bytes"))
    if not asked or free is None or unused is None or free + unused < asked:
        return ()
    return (
        f"torch held {_size(int(unused))} more that it had reserved and not used: with what was "
        "free, enough, but in pieces. PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True may join "
        "them; it is a second factor, and makes no room for anything else.",
    )


def _gib(size: float) -> str:
    return f"{size / 2**30:,.2f} GiB"


def _size(asked: int) -> str:
    return f"{asked / 2**20:,.0f} MiB" if asked >= 2**20 else f"{asked:,} bytes"


def _is_refusal(event: Event) -> bool:
    if event.data.get("type") in ("OutOfMemoryError", "MemoryError"):
        return True
    return any(mark in str(event.data.get("message", "")) for mark in _REFUSALS)
