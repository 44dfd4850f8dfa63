"""A capture from the trials of a benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

from stallscope.profiler.capture import Capture, Event, Request, Source
from stallscope.profiler.spec import Subject
from stallscope.profiler.trial import Trial, trials_to_json
from stallscope.profiler.wall_clock import WallClock
from stallscope.profiler.wording import counted, figure


@dataclass(frozen=True, slots=True)
class Result:
    """One trial and what came with it."""

    tool: str
    model: str | None
    subject: Subject
    trial: Trial
    requests: tuple[Request, ...] = ()
    notes: tuple[str, ...] = ()
    clock: WallClock | None = None


def capture_of(results: Sequence[Result], paths: Sequence[str]) -> Capture:
    """Put trials into a capture; the one with most output tokens per second is judged."""
    judged = judged_trial([r.trial for r in results])
    chosen = results[judged]
    trial, told = chosen.trial, _shared([r.subject for r in results])
    tools = ", ".join(dict.fromkeys(r.tool for r in results))
    return Capture(
        subject=replace(
            told,
            workload=_workload(chosen),
            concurrency=trial.concurrency,
            rate_per_s=trial.rate_per_s,
        ),
        requests=chosen.requests,
        events=tuple(Event(0, "check", None, {"sentence": s}) for r in results for s in r.notes)
        + tuple(_checks(results, chosen)),
        sources=tuple(
            Source(i, f"results of {tools}", path, "client's", 0, 0) for i, path in enumerate(paths)
        ),
        meta={
            "ended": {},
            "clock": None if chosen.clock is None else chosen.clock.meta(),
            "benchmark": {
                "tool": tools,
                "model": chosen.model,
                "judged": judged,
                "trials": trials_to_json(tuple(r.trial for r in results)),
            },
        },
    )


def judged_trial(trials: Sequence[Trial]) -> int:
    """Return which trial to judge: most output tokens, else most requests, per second."""

    def pace(i: int) -> tuple[bool, float, float]:
        trial = trials[i]
        return (
            not trial.failed_all,
            trial.output_tokens_per_s or 0.0,
            trial.requests_per_s or 0.0,
        )

    return max(range(len(trials)), key=pace)


def _shared(subjects: Sequence[Subject]) -> Subject:
    """Keep what all say alike."""
    first = subjects[0]
    alike = {
        f.name: getattr(first, f.name)
        for f in fields(Subject)
        if all(getattr(s, f.name) == getattr(first, f.name) for s in subjects)
    }
    return Subject(**alike)


def _workload(result: Result) -> str:
    trial = result.trial
    parts = [counted(trial.completed, "request") if trial.completed is not None else "requests"]
    if result.model:
        parts.append(f"to {result.model}")
    if trial.input_tokens and trial.output_tokens:
        parts.append(f"of {trial.input_tokens:,.0f} + {trial.output_tokens:,.0f} tokens")
    if trial.concurrency is not None:
        parts.append(f"from {counted(trial.concurrency, 'client')}")
    if trial.rate_per_s is not None:
        parts.append(f"at {figure(trial.rate_per_s, 4)} a second")
    return " ".join(parts)


def _checks(results: Sequence[Result], chosen: Result) -> Iterator[Event]:
    """Say what failed, and what a client does not see."""
    failed = [r.trial for r in results if r.trial.failed_all]
    if chosen.trial.failed_all:
        yield _check(
            f"{_all_of(chosen.trial)} failed: there is no figure of one that came back.",
            **{"class": "undetermined", "blocks": ["verdict"]},
        )
    elif failed:
        yield _check(f"In {len(failed)} of {len(results)} trials every request failed.")
    trial = chosen.trial
    if trial.failed and trial.completed:
        asked = trial.failed + trial.completed
        yield _check(
            f"{trial.failed:,} of {asked:,} requests failed; all figures are of the others."
        )
    if trial.waiting is None:
        yield _unseen("what the engine did (requests running and waiting, KV use)", "a client sees")
    else:
        yield _unseen("requests running and KV use", "the summary of the server's metrics tells")


def _all_of(trial: Trial) -> str:
    if trial.failed == 1:
        return "The one request"
    return f"All {trial.failed:,} requests" if trial.failed else "All requests"


def _check(sentence: str, **more: Any) -> Event:
    return Event(0, "check", None, {"sentence": sentence, **more})


def _unseen(what: str, who: str) -> Event:
    data = {
        "what": what,
        "reason": f"{who} nothing of it",
        "how": "give the server's log of the same time beside the results",
    }
    return Event(0, "not_observable", None, data)
