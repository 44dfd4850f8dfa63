"""The cap on running requests, where a source does not state it but shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from stallscope.profiler.cap_proof import is_proven, only_decodes
from stallscope.profiler.capture import FRONTEND_CPU, EngineSample
from stallscope.profiler.held_queue import Moment, running_while_held

VLLM_DEFAULTS = (128, 256, 1024)  # max_num_seqs by device and version, if nobody sets it
_PINNED = 0.8  # of the moments with a queue at the cap
_NEAR = 0.95  # a moment between two steps sees slots free that the next one fills
_AT_MOST = 0.5  # of those, at the very maximum: a number that merely swings is seldom there
_LEAST_MOMENTS = 4
_LEAST_RUNNING = 8  # fewer are held by much else
_FULL = 0.95
_ROOMY = 0.5  # used: whatever the queue's head needs, it is there


class Cap(NamedTuple):
    """A cap, the sentence that says how it was seen, and the clause in it that says what was.

    `is_proven` says that a higher cap cannot have held the queue, whoever states it.
    """

    running: int
    sentence: str
    seen: str
    is_proven: bool = False

    def facts(self) -> dict[str, object]:
        """Return what an event tells of it, for who states another."""
        proven = {"proven": True} if self.is_proven else {}
        return {"infers": "max_num_seqs", "cap": self.running, "seen": self.seen, **proven}


def seen_cap(
    samples: Sequence[EngineSample],
    engine: str | None,
    *,
    source: str = "log",
    moment: str = "line",
) -> Cap | None:
    """Return the number of running requests that was never passed while others waited.

    It must be a default of vLLM's, or the number at which nobody was let in, or that of nearly
    every moment with a queue and free KV room.
    The sentence calls what was read a `source` of many a `moment`.
    """
    moments = _moments(samples)
    queued = [m for m in moments if m.get("waiting")]
    most = max((m["running"] for m in moments), default=0.0)
    at_most = [m for m in queued if m["running"] == most]
    if not at_most or most < _LEAST_RUNNING:
        return None
    found = _plateau(queued, most, source, moment) or _gate(samples, most, source, moment)
    if found is not None:
        found = found._replace(is_proven=is_proven(moments, most))
    if engine != "vllm" or most not in VLLM_DEFAULTS:
        return found
    said = f"running stood at {most:.0f}, a default of vLLM's, while requests waited"
    said += ", and was never higher"
    sentence = f"The {source} does not state max_num_seqs; {said}."
    if found is None:
        return Cap(int(most), sentence, said)
    return found._replace(sentence=sentence)


def _plateau(queued: Sequence[Moment], most: float, source: str, moment: str) -> Cap | None:
    roomy = [m for m in queued if m.get("kv_used_fraction", 1.0) < _FULL]
    pinned = sum(m["running"] == most for m in roomy)
    near = sum(m["running"] >= _NEAR * most for m in roomy)
    if pinned < max(_LEAST_MOMENTS, _AT_MOST * near) or near < _PINNED * len(queued):
        return None
    said = f"running stood at {most:.0f} in {pinned} of {len(queued)} {moment}s with a queue"
    said += f", and just under it in {near - pinned}" if near > pinned else ""
    return Cap(int(most), f"The {source} states no cap on running requests; {said}.", said)


def decoding_cap(samples: Sequence[EngineSample], source: str) -> Cap | None:
    """Return the cap where a moment or few show that nothing else can hold the queue.

    As many first tokens were counted beyond the requests that ended as requests run: no prompt is
    in work, so the token budget has room, and the KV pool has too. A burst that came within the
    last step looks the same, which a longer series would tell.
    """
    moments = _moments(samples)
    queued = [m for m in moments if _waits_for_a_slot(m)]
    most = max((m["running"] for m in moments), default=0.0)
    held = [m for m in queued if m["running"] == most and only_decodes(m)]
    if not held or most < _LEAST_RUNNING or len(queued) >= _LEAST_MOMENTS:
        return None
    first = held[0]
    said = (
        f"all {most:.0f} that run have "
        f"their first token ({first['ttft_s_count']:,.0f} first tokens, "
        f"{first['finished_total']:,.0f} requests ended), so no prompt is in work, and "
        f"{first['waiting']:.0f} wait while {first['kv_used_fraction']:.0%} of the KV cache is used"
    )
    sentence = (
        f"The {source} does not state the cap on running requests: {said}; the cap was taken to be "
        "what runs."
    )
    return Cap(int(most), sentence, said)


def _waits_for_a_slot(moment: Moment) -> bool:
    has_room = moment.get("kv_used_fraction", 1.0) < _ROOMY
    return has_room and moment["waiting"] > moment.get("waiting_deferred", 0.0)


def _gate(samples: Sequence[EngineSample], most: float, source: str, moment: str) -> Cap | None:
    held = running_while_held(samples)
    at_most = held.count(most)
    if len(held) < _LEAST_MOMENTS or at_most < _PINNED * len(held):
        return None
    said = f"{most:.0f} ran in {at_most} of {len(held)} stretches between {moment}s in which "
    said += "requests waited, tokens were made, KV had room and no prompt was let in"
    return Cap(int(most), f"The {source} states no cap on running requests; {said}.", said)


def _moments(samples: Sequence[EngineSample]) -> list[Moment]:
    found: dict[tuple[str, int], Moment] = {}
    for sample in samples:
        if sample.name != FRONTEND_CPU:
            found.setdefault((sample.engine, sample.t_ns), {})[sample.name] = sample.value
    moments, last = [], dict[str, Moment]()
    for (engine, _), moment in found.items():
        # A page on which no counter moved either is the last one again: an engine between steps.
        is_same = last.get(engine) == moment and "output_tokens_total" in moment
        if "running" in moment and "waiting" in moment and not is_same:
            moments.append(moment)
        last[engine] = moment
    is_repeated = len(moments) > 1 and _gauges(moments[-1]) == _gauges(moments[-2])
    return moments[:-1] if is_repeated else moments  # a period's end repeats its line


def _gauges(moment: Moment) -> Moment:
    return {name: value for name, value in moment.items() if not name.endswith("_total")}
