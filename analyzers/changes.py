"""What limited the run at first, and what later: windows of one answer, joined."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import groupby

from stallscope.analyzers.result import Window
from stallscope.profiler.wording import figure

_BRIEF = 0.1  # of the run: a shorter stretch is the beginning, the end, or a dip
_MOST = 4  # stretches that a sentence can hold

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
_UNSEEN = "requests queue under no limit that was seen"
_LOADS = {"idle": "nothing is asked for", "underloaded": "little is asked for"}


def stretches(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Join neighbouring windows of the same answer, from the first of them to the last.

    Brief stretches, and queues under no limit that was seen, are left out before.
    """
    seen = [w for w in _lasting(windows) if _answer(w) != _UNSEEN]
    return _joined(seen) if seen else _joined(windows)


def _lasting(windows: Sequence[Window]) -> tuple[Window, ...]:
    found = _joined(windows)
    brief_s = _BRIEF * (found[-1].to_s - found[0].from_s) if found else 0.0
    return _joined([w for w in found if w.to_s - w.from_s >= brief_s])


def _told(windows: Sequence[Window]) -> tuple[Window, ...]:
    """Return the stretches with the queues under no limit that was seen, which a chart shows too.

    One between two stretches of the same answer is left out: nothing else was seen to hold there.
    """
    lasting = _lasting(windows)
    answers = ["", *(_answer(w) for w in lasting), " "]
    kept = [
        window
        for window, before, own, after in zip(
            lasting, answers, answers[1:], answers[2:], strict=False
        )
        if own != _UNSEEN or before != after
    ]
    has_seen = any(answer != _UNSEEN for answer in answers[1:-1])
    return _joined(kept if has_seen else windows)


def _joined(windows: Sequence[Window]) -> tuple[Window, ...]:
    runs = (list(run) for _, run in groupby(windows, key=_answer))
    return tuple(dataclasses.replace(run[0], to_s=run[-1].to_s) for run in runs)


def _answer(window: Window) -> str:
    """Say in a clause what a window shows."""
    if window.limit is not None:
        return _LIMITED[window.limit]
    if window.bottleneck in _SERVED:
        return _SERVED[window.bottleneck]
    if window.load == "overloaded":
        return _UNSEEN
    return _LOADS.get(window.load, "nothing queues")


def changes_text(windows: Sequence[Window]) -> str | None:
    """Tell how the limit changed, in one sentence; None where it did not, or where none held."""
    found = stretches(windows)
    if len(found) < 2 or all(w.limit is None for w in found):
        return None
    found = _told(windows)
    if len(found) > _MOST:
        return f"It changes {len(found) - 1} times: {_shares(found)}."
    told = [f"{_answer(w)} ({_seconds(w.from_s)} to {_seconds(w.to_s)} s)" for w in found]
    return f"Over time: first {', then '.join(told)}."


def _seconds(value: float) -> str:
    """Return seconds in the three digits that the chart beside the sentence has."""
    return figure(value)


def _shares(found: Sequence[Window]) -> str:
    seconds: dict[str, float] = {}
    for window in found:
        length = window.to_s - window.from_s
        seconds[_answer(window)] = seconds.get(_answer(window), 0.0) + length
    total = sum(seconds.values())
    ranked = sorted(seconds.items(), key=lambda item: -item[1])
    return ", ".join(f"{what} {100 * s / total:.0f} % of the time" for what, s in ranked)
