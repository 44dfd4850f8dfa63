"""What one source could not observe and another one did."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stallscope.profiler.capture import Event
from stallscope.profiler.spec import Subject

_Told = Callable[[frozenset[str], Subject], bool]
# By how the readers of pages, logs and benchmarks name what they miss.
_ANSWERS: Mapping[str, _Told] = {
    "KV cache use": lambda names, _: "kv_used_fraction" in names or "kv_used_bytes" in names,
    "the cap on running requests": lambda _, subject: subject.max_num_seqs is not None,
    "requests that wait and run": lambda names, _: {"running", "waiting"} <= names,
    "what the engine did": lambda names, _: "running" in names,
    "requests running and KV use": lambda names, _: "running" in names,
}


def is_answered(event: Event, names: frozenset[str], subject: Subject) -> bool:
    """Tell whether an event says that something is not observable which the joined capture has.

    `names` are those of its engine samples.
    """
    if event.kind != "not_observable":
        return False
    what = str(event.data.get("what", ""))
    told = next((told for name, told in _ANSWERS.items() if what.startswith(name)), None)
    return told is not None and told(names, subject)
