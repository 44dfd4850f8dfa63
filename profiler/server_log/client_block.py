"""What a benchmark's client printed into the same file as the server's log."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from stallscope.profiler.benchmark.printed import blocks_of, is_printed
from stallscope.profiler.benchmark.serving import trials
from stallscope.profiler.trial import Trial, trials_to_json

MARK = "Serving Benchmark Result"
# What a line that tells of the engine's load holds: a client's own lines have none of them.
_OF_LOAD = (
    *("Running: ", "#running-req", "#queue-req", "Iteration(", "iter = ", "eval time"),
    *("Active Request Count", "preempted by"),
)


class Printed(NamedTuple):
    """What is kept of the blocks in a log, and the sentences that say so."""

    meta: dict[str, Any]
    sentences: tuple[str, ...]


NONE = Printed({}, ())


def tells_load(lines: Iterable[str]) -> bool:
    """Tell whether a log says anything of running requests: a client's own log does not."""
    return any(mark in line for line in lines for mark in _OF_LOAD)


def printed_in(lines: Iterable[str], path: str) -> Printed:
    """Return the one trial that was printed; of several none is known to be of the log's time."""
    found = list(_trials(lines, path))
    if not found:
        return NONE
    if len(found) > 1:
        return Printed({}, (_several(len(found)),))
    meta = {"trials": trials_to_json(tuple(found)), "judged": 0}
    return Printed({"printed_benchmark": meta}, (_one(found[0]),))


def _trials(lines: Iterable[str], path: str) -> Iterator[Trial]:
    for block in blocks_of(lines):
        if is_printed(block.row):
            yield from trials(block.row, path)


def _several(number: int) -> str:
    return (
        f"The log holds {number} results that a benchmark printed, and nothing says which one its "
        "lines are of: none is used. Give the lines of one run with its result."
    )


def _one(trial: Trial) -> str:
    took = "" if trial.duration_s is None else f" of {trial.duration_s:,.0f} s"
    return (
        f"The log holds the result that a benchmark{took} printed: latencies are its client's, "
        "over the whole run; the log's lines are taken to be of the same run."
    )
