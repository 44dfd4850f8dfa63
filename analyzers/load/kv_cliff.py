"""A server that makes far fewer tokens once its KV pool is full, with as many running.

What is preempted is prefilled again, and engines count neither: a log has no counter of
preemptions, and a prompt's tokens are counted once. What shows is that all that is counted falls,
prompts and tokens, while the pool stands full, whether or not anything waits.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from stallscope.analyzers.load.engines import Moment, Values, moments
from stallscope.analyzers.load.kept import kept
from stallscope.analyzers.load.pool_use import used_share
from stallscope.analyzers.load.put_back import FULL
from stallscope.analyzers.load.span import Span
from stallscope.analyzers.measures import measure
from stallscope.analyzers.result import Remedy
from stallscope.analyzers.step.limit import QUALITY, Decision
from stallscope.analyzers.thresholds import Thresholds
from stallscope.profiler.capture import Capture, EngineSample
from stallscope.profiler.evidence import Measure
from stallscope.profiler.wording import figure

FELL_TO = 0.5  # of the tokens a second that were made with room: with more running it should rise
_FEWER = 0.75  # of the requests that run when it is full: with fewer, rates say less
_SLOW_WITH_ROOM = 0.1  # of the time with room: slow before it was full, something else slows it
_LEAST_NS = 30_000_000_000  # of each kind: three of vLLM's lines
_MOST_SURE = 0.6  # nothing counted a preemption
_OUT, _IN = "output_tokens_total", "input_tokens_total"


@dataclass(frozen=True, slots=True)
class Cliff:
    """Tokens a second and running requests of one engine, with room in its pool and without.

    `most_running` is how many ran with room at the most; `full` holds the stretches (start, end)
    in which it was full.
    """

    engine: str
    room_rate: float
    room_running: float
    most_running: int
    full_rate: float
    full_running: float
    full: tuple[tuple[int, int], ...]

    @property
    def text(self) -> str:
        """Say both rates."""
        return (
            f"with the KV pool full and {figure(self.full_running)} running the engine makes "
            f"{self.full_rate:,.1f} tokens/s, with room in it and {figure(self.room_running)} "
            f"running {self.room_rate:,.1f}"
        )

    def full_share(self, span: Span) -> float:
        """The part of a span in which the pool was full."""
        return sum(span.overlap_ns(start, end) for start, end in self.full) / span.duration_ns

    def lost(self, span: Span) -> float:
        """The part of a span's time that was lost to it."""
        return self.full_share(span) * (1.0 - self.full_rate / self.room_rate)


@dataclass(frozen=True, slots=True)
class _Lap:
    start_ns: int
    end_ns: int
    now: Values
    after: Values

    @property
    def ns(self) -> int:
        return self.end_ns - self.start_ns

    @property
    def is_full(self) -> bool:
        return (used_share(self.now) or 0.0) >= FULL

    def made(self, name: str) -> float:
        return max(0.0, self.after[name] - self.now[name])


@kept
def cliffs(samples: Sequence[EngineSample]) -> tuple[Cliff, ...]:
    """Return the engines that fell off it; none where the pool or tokens are not told."""
    found = moments(samples)
    names = sorted({name for m in found for name in m.engines})
    return tuple(c for name in names if (c := _cliff(name, list(_laps(name, found)))) is not None)


def _laps(engine: str, found: Sequence[Moment]) -> Iterator[_Lap]:
    for now, after in pairwise(found):
        a, b = now.engines.get(engine), after.engines.get(engine)
        if a is None or b is None or used_share(a) is None or not a["running"]:
            continue
        if all(name in values for name in (_OUT, _IN) for values in (a, b)):
            yield _Lap(now.start_ns, after.start_ns, a, b)


def _cliff(engine: str, laps: Sequence[_Lap]) -> Cliff | None:
    full = [lap for lap in laps if lap.is_full]
    if sum(lap.ns for lap in full) < _LEAST_NS or _counts_none(full):
        return None
    running = _mean_running(full)
    room = [x for x in laps if not x.is_full and _FEWER * running <= x.now["running"] <= running]
    if sum(lap.ns for lap in room) < _LEAST_NS:
        return None
    made, slow = _rate(room, _OUT), _rate(full, _OUT)
    if slow > FELL_TO * made or _rate(full, _IN) > _rate(room, _IN):
        return None
    before = [lap for lap in room if lap.made(_OUT) < FELL_TO * made * lap.ns * 1e-9]
    if sum(lap.ns for lap in before) > _SLOW_WITH_ROOM * sum(lap.ns for lap in room):
        return None
    stretches = tuple((lap.start_ns, lap.end_ns) for lap in full)
    most = round(max(lap.now["running"] for lap in room))
    return Cliff(engine, made, _mean_running(room), most, slow, running, stretches)


def _counts_none(full: Sequence[_Lap]) -> bool:
    """Tell whether the engine counts preemptions, and counted none while it was full."""
    name = "preemptions_total"
    rows = [lap for lap in full if name in lap.now and name in lap.after]
    return bool(rows) and not any(lap.made(name) for lap in rows)


def _mean_running(laps: Sequence[_Lap]) -> float:
    return sum(lap.now["running"] * lap.ns for lap in laps) / sum(lap.ns for lap in laps)


def _rate(laps: Sequence[_Lap], name: str) -> float:
    return sum(lap.made(name) for lap in laps) / (sum(lap.ns for lap in laps) * 1e-9)


def worst_cliff(capture: Capture, span: Span) -> Cliff | None:
    """Return the engine that lost most of a span to it."""
    if not span.duration_ns:
        return None
    return max(cliffs(capture.engine_samples), key=lambda c: c.lost(span), default=None)


def cliff_decision(cliff: Cliff, span: Span, instead: Decision, t: Thresholds) -> Decision:
    """Name the full pool, with what would limit otherwise as next."""
    reason = f"{cliff.text}: what grows beyond the pool is preempted and prefilled again"
    after = instead.bottleneck if instead.bottleneck != "undetermined" else None
    quality, line = QUALITY["derived"], t.queue_wait_share
    return Decision("capacity", cliff.lost(span), line, after, 0.0, quality, reason, cap=_MOST_SURE)


def cliff_measures(capture: Capture, span: Span) -> tuple[Measure, ...]:
    """Return both rates and the time in which the pool was full."""
    cliff = worst_cliff(capture, span)
    if cliff is None:
        return ()
    found = (
        ("tokens_per_s_with_room", cliff.room_rate, "with room in the KV pool"),
        ("tokens_per_s_when_full", cliff.full_rate, "with the KV pool 97 % full"),
        ("kv_full_share", cliff.full_share(span), "with the KV pool 97 % full"),
    )
    return tuple(
        measure(name, value, "derived", f"gauges and counters of the samples {when}")
        for name, value, when in found
    )


def cliff_note(capture: Capture) -> tuple[str, ...]:
    """Say what a full pool costs, whatever the verdict rests on."""
    return tuple(
        f"{c.text[0].upper()}{c.text[1:]}: of a pool that is full, more requests at once make less."
        for c in cliffs(capture.engine_samples)
    )


def fewer_at_once(capture: Capture, span: Span) -> tuple[Remedy, ...]:
    """Name the number of requests with which it was faster."""
    worst = worst_cliff(capture, span)
    if worst is None:
        return ()
    most, cap = worst.most_running, capture.subject.max_num_seqs
    if cap is not None and most >= cap:  # no more are admitted already
        return ()
    remedy = Remedy(
        f"admit at most {most} at once: {worst.text}",
        {
            "stallscope": f"--max-num-seqs {most}",
            "vllm": f"--max-num-seqs {most}",
            "sglang": f"--max-running-requests {most}",
        },
        None,
        "tokens/s rise to what they were with room, and KV use stays under 97 %",
        ("kv_used_peak",),
        cost="the others wait in the queue, so TTFT grows for them",
    )
    return (remedy,)
