"""What a window shows, in a clause; and neighbours of one answer, joined."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import groupby

from stallscope.analyzers.result import State, Window

_BRIEF = 0.1  # of the run: a shorter stretch is the beginning, the end, or a dip

_LIMITED = {
    "kv": "the KV cache is full",
    "seqs": "the sequence cap holds the queue",
    "tokens": "prompts use up the token budget",
    "prefill": "prompts queue behind prompts",
    "batch": "a static batch holds the queue",
    "stalled": "the engine stands still",
    "imbalance": "one engine has the queue and another room",
    "deferred": "requests are put off for something other than room",
    "front": "requests queue in front of the scheduler",
}
_SERVED = {
    "bandwidth": "memory bandwidth limits",
    "compute": "arithmetic limits",
    "host": "the host limits",
    "interconnect": "the interconnect limits",
    "device": "the device gives less than it has (clocks, or others on it)",
    "client": "the clients send less than they offer",
    "capacity": "the KV cache is full",
}
UNSEEN = "requests queue under no limit that was seen"
_LOADS = {"idle": "nothing is asked for", "underloaded": "little is asked for"}


def answer(window: Window) -> str:
    """Say in a clause what a window shows."""
    if window.limit is not None:
        return _LIMITED[window.limit]
    if window.bottleneck in _SERVED:
        return _SERVED[window.bottleneck]
    if window.load == "overloaded":
        return UNSEEN
    return _LOADS.get(window.load, "nothing queues")


def state(window: Window, phase: str) -> State:
    """Return what held in a window; the steps of one phase know of no queue."""
    is_open = phase != "all" and window.bottleneck not in _SERVED
    text = "no limit stands out" if is_open else answer(window)
    return State(window.bottleneck, window.load, window.limit, text)


def joined(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Join neighbouring windows of the same answer, from the first of them to the last."""
    runs = (list(run) for _, run in groupby(windows, key=answer))
    return tuple(dataclasses.replace(run[0], to_s=run[-1].to_s) for run in runs)


def seen(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Leave out queues under no limit that was seen, and join what they stood between."""
    kept = [w for w in windows if answer(w) != UNSEEN]
    return joined(kept or windows)


def stretches(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Join windows of one answer; a brief stretch is left out, and its neighbours are joined.

    So is a queue under no limit that was seen, between two stretches of the same answer: nothing
    else was seen to hold there.
    """
    lasting = _lasting(windows)
    answers = ["", *(answer(w) for w in lasting), " "]
    kept = [
        window
        for window, before, own, after in zip(
            lasting, answers, answers[1:], answers[2:], strict=False
        )
        if own != UNSEEN or before != after
    ]
    has_seen = any(found != UNSEEN for found in answers[1:-1])
    return joined(kept if has_seen else windows)


def _lasting(windows: Sequence[Window]) -> tuple[Window, ...]:
    found = joined(windows)
    brief_s = _BRIEF * (found[-1].to_s - found[0].from_s) if found else 0.0
    return joined([w for w in found if w.to_s - w.from_s >= brief_s])
